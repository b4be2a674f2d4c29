#include "core/cloud_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/canonical_json.h"
#include "core/field.h"
#include "core/name.h"

namespace hapax {

namespace {

constexpr std::size_t kMaxEventId = 255;  // in bytes

Json make_string(std::string_view text) {
  Json value;
  value.kind = Json::Kind::string;
  value.text = text;
  return value;
}

bool is_data(std::string_view name) { return name == "data" || name == "data_base64"; }

bool is_attribute_name(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

void check_attribute(const std::string& name, const Json& value, const std::string& at) {
  if (!is_attribute_name(name)) {
    throw InvalidField(at, "is no name of an attribute, which has only the characters a-z and 0-9");
  }
  if (value.is(Json::Kind::string) || value.is(Json::Kind::boolean)) return;
  const auto number = value.as_int();
  using Int32 = std::numeric_limits<std::int32_t>;
  if (!number || *number < Int32::min() || *number > Int32::max()) {
    throw InvalidField(at, "must be a string, true, false or a 32-bit integer, as every attribute of a CloudEvent is");
  }
}

std::optional<std::string> read_text(FieldReader& reader, std::string_view name) {
  auto text = reader.string(name);
  if (text && text->empty()) throw InvalidField(reader.pointer(name), "must not be empty");
  return text;
}

bool is_base64(std::string_view text) {
  if (text.size() % 4 != 0) return false;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return out;
}

int from_base64(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : 63;
}

// Of a text that is_base64().
std::string base64_bytes(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(from_base64(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

// The media type in lower case, without its parameters.
std::string media_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

bool is_json_type(std::string_view type) {
  return type == "application/json" || type == "text/json" || type.ends_with("+json");
}

// Text that spells JSON is that JSON: whether a body comes as JSON or as text is up to its Content-Type, which does
// not count.
Json read_text_data(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const InvalidJson&) {
    return make_string(text);
  }
}

// Bytes that are UTF-8 are text. Nothing for others.
std::optional<Json> read_base64_data(std::string_view text) {
  const std::string bytes = base64_bytes(text);
  if (!is_valid_utf8(bytes)) return std::nullopt;
  return read_text_data(bytes);
}

void check_data(FieldReader& reader) {
  const Json* data = reader.any("data");
  const auto base64 = reader.string("data_base64");
  if (!base64) return;
  if (data != nullptr)
    throw InvalidField(reader.pointer("data_base64"), "must not stand beside \"data\": it is one or the other");
  if (!is_base64(*base64))
    throw InvalidField(reader.pointer("data_base64"), "must be Base64 (RFC 4648) with its padding");
}

// ---- binary mode

std::pair<std::string, Json> read_data(std::string_view content_type, std::string_view body) {
  const std::string type = media_type(content_type);
  if (is_json_type(type)) {
    try {
      return {"data", parse_json(body)};
    } catch (const InvalidJson& error) {
      throw InvalidField("/data", fmt::format("is no JSON, though its content type is {}: {}", type, error.what()));
    }
  }
  if (type.empty()) {
    try {
      return {"data", parse_json(body)};
    } catch (const InvalidJson&) {
      // Then it is any bytes.
    }
  }
  if (type.starts_with("text/") && is_valid_utf8(body)) return {"data", make_string(body)};
  return {"data_base64", make_string(to_base64(body))};
}

bool meets(const EventTrigger::Where& where, const Json* data) {
  using Test = EventTrigger::Where::Test;
  const Json* value = data == nullptr ? nullptr : data->at(where.pointer);
  if (where.test == Test::exists) return (value != nullptr) == (where.value == "true");
  if (value == nullptr) return false;
  if (where.test == Test::prefix) return value->is(Json::Kind::string) && value->text.starts_with(where.value);
  return canonical_json(*value) == where.value;
}

}  // namespace

CloudEvent CloudEvent::parse(const Json& document, const std::string& at) {
  FieldReader reader(document, at);
  CloudEvent event;
  event.document.kind = Json::Kind::object;
  for (const auto& [name, value] : document.members) {
    if (!is_data(name)) {
      if (value.is(Json::Kind::null)) continue;  // the same as absent
      check_attribute(name, value, reader.pointer(name));
    }
    if (name == "data_base64" && value.is(Json::Kind::null)) continue;
    event.document.members.emplace_back(name, value);
  }
  const std::string version = reader.required("specversion", reader.string("specversion"));
  if (version != "1.0") {
    throw InvalidField(reader.pointer("specversion"), fmt::format("must be \"1.0\", not \"{}\"", version));
  }
  event.id = read_text(reader, "id").value_or("");
  if (event.id.size() > kMaxEventId) {
    throw InvalidField(reader.pointer("id"),
                       fmt::format("must be at most {} bytes long, not {}", kMaxEventId, event.id.size()));
  }
  event.source = reader.required("source", read_text(reader, "source"));
  event.type = reader.required("type", read_text(reader, "type"));
  event.subject = read_text(reader, "subject");
  const bool has_content_type = read_text(reader, "datacontenttype").has_value();
  read_text(reader, "dataschema");
  reader.time("time");
  check_data(reader);
  // Adds what the format implies, so that the event is the same in every mode.
  if (event.data() != nullptr && !has_content_type) {
    event.document.members.emplace_back("datacontenttype", make_string("application/json"));
  }
  return event;
}

void CloudEvent::assign_id(std::string new_id) {
  id = std::move(new_id);
  id_assigned = true;
  std::erase_if(document.members, [](const auto& member) { return member.first == "id"; });
  document.members.emplace(document.members.begin(), "id", make_string(id));
}

EventHash CloudEvent::hash() const {
  Json parts;
  parts.kind = Json::Kind::array;
  parts.items = {make_string("hapax.event/1"), make_string(type), make_string(source),
                 subject ? make_string(*subject) : Json()};
  const Json* base64 = document.find("data_base64");
  std::optional<Json> normal;
  if (const Json* value = data()) {
    // A string among JSON is a string: "1" is not 1. One of another type is the text of the body.
    const Json* type = document.find("datacontenttype");
    const bool is_text = value->is(Json::Kind::string) && type != nullptr && !is_json_type(media_type(type->text));
    normal = is_text ? read_text_data(value->text) : *value;
  }
  if (base64 != nullptr) normal = read_base64_data(base64->text);
  if (normal) {
    parts.items.insert(parts.items.end(), {make_string("data"), *std::move(normal)});
  } else if (base64 != nullptr) {
    parts.items.insert(parts.items.end(), {make_string("data_base64"), *base64});
  }
  return {sha256(canonical_json(parts))};
}

std::string CloudEvent::occurrence(DedupeBy dedupe_by) const {
  return dedupe_by == DedupeBy::id ? id : fmt::format("{}:{}", source, id);
}

CloudEvent read_binary_event(const std::vector<std::pair<std::string, std::string>>& attributes,
                             std::string_view content_type, std::string_view body) {
  Json document;
  document.kind = Json::Kind::object;
  const auto add = [&](const std::string& name, Json value) {
    if (document.find(name) != nullptr) throw InvalidField("/" + pointer_step(name), "is there twice");
    document.members.emplace_back(name, std::move(value));
  };
  for (const auto& [name, value] : attributes) {
    const std::string at = "/" + pointer_step(name);
    if (is_data(name)) throw InvalidField(at, "must not be a header: in binary mode the body is the data");
    if (name == "datacontenttype")
      throw InvalidField(at, "must not be a header of its own: in binary mode Content-Type says it");
    if (!is_valid_utf8(value)) throw InvalidField(at, "must be UTF-8, percent-encoded");
    add(name, make_string(value));
  }
  if (!is_valid_utf8(content_type)) throw InvalidField("/datacontenttype", "must be UTF-8");
  if (!content_type.empty()) add("datacontenttype", make_string(content_type));
  if (!body.empty()) {
    auto [name, data] = read_data(content_type, body);
    add(name, std::move(data));
  }
  return CloudEvent::parse(document);
}

bool matches(const EventTrigger& trigger, const CloudEvent& event) {
  if (trigger.type && *trigger.type != event.type) return false;
  if (trigger.source && *trigger.source != event.source) return false;
  if (trigger.subject && trigger.subject != event.subject) return false;
  return std::all_of(trigger.where.begin(), trigger.where.end(),
                     [&](const EventTrigger::Where& where) { return meets(where, event.data()); });
}

}  // namespace hapax
