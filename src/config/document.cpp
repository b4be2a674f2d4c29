#include "config/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace hapax {

namespace {

Json number(std::string literal) {
  Json json;
  json.kind = Json::Kind::number;
  json.text = std::move(literal);
  return json;
}

class Converter {
 public:
  Converter(ConfigDocument& document, const std::string& file) : document_(document), file_(file) {}

  Json convert(const toml::node& node, const std::string& pointer) {
    document_.origins.emplace(pointer, fmt::format("{}:{}", file_, std::max(1u, node.source().begin.line)));
    if (const auto* table = node.as_table()) return convert_table(*table, pointer);
    if (const auto* array = node.as_array()) return convert_array(*array, pointer);
    if (const auto* text = node.as_string()) return json_string(text->get());
    if (const auto* integer = node.as_integer()) return number(std::to_string(integer->get()));
    if (const auto* boolean = node.as_boolean()) {
      Json json;
      json.kind = Json::Kind::boolean;
      json.boolean = boolean->get();
      return json;
    }
    if (const auto* real = node.as_floating_point()) {
      if (!std::isfinite(real->get())) throw document_.error(pointer, "must be a finite number");
      return number(fmt::format("{}", real->get()));
    }
    throw document_.error(pointer, "is a date or time, which no setting accepts; write text in quotes");
  }

 private:
  Json convert_table(const toml::table& table, const std::string& pointer) {
    Json json = json_object();
    for (const auto& [key, value] : table) {
      json.members.emplace_back(key.str(), convert(value, pointer + "/" + pointer_step(key.str())));
    }
    return json;
  }

  Json convert_array(const toml::array& array, const std::string& pointer) {
    Json json;
    json.kind = Json::Kind::array;
    for (std::size_t i = 0; i < array.size(); ++i) {
      json.items.push_back(convert(array[i], fmt::format("{}/{}", pointer, i)));
    }
    return json;
  }

  ConfigDocument& document_;
  const std::string& file_;
};

// The steps of a pointer, unescaped.
std::vector<std::string> steps(std::string_view pointer) {
  std::vector<std::string> out;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string step;
    for (std::size_t i = 0; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end;
      step += !escaped ? pointer[i] : pointer[i + 1] == '1' ? '/' : '~';
      if (escaped) ++i;
    }
    out.push_back(std::move(step));
    pointer.remove_prefix(end);
  }
  return out;
}

// [queues.payments] retention
std::string spell(const std::vector<std::string>& path) {
  if (path.empty()) return "";
  if (path.size() == 1) return path[0];
  const bool named = path[0] == "queues" || path[0] == "types" || path[0] == "activities" || path[0] == "tokens";
  const std::size_t header = std::min<std::size_t>(named ? 2 : 1, path.size());
  std::string text = "[" + path[0] + (header == 2 ? "." + path[1] : "") + "]";
  for (std::size_t i = header; i < path.size(); ++i) text += (i == header ? " " : ".") + path[i];
  return text;
}

}  // namespace

void ConfigDocument::set(std::string_view section, std::string_view key, Json value, std::string origin) {
  const auto member = [](Json& object, std::string_view name) -> Json& {
    for (auto& [existing, json] : object.members) {
      if (existing == name) return json;
    }
    return object.members.emplace_back(std::string(name), Json{}).second;
  };
  Json& table = member(root, section);
  if (!table.is(Json::Kind::object)) table = json_object();
  member(table, key) = std::move(value);
  origins[fmt::format("/{}/{}", section, key)] = std::move(origin);
}

std::string ConfigDocument::origin(std::string_view pointer) const {
  while (true) {
    if (const auto found = origins.find(pointer); found != origins.end()) return found->second;
    if (pointer.empty()) return "configuration";
    pointer = pointer.substr(0, pointer.rfind('/'));
  }
}

ConfigError ConfigDocument::error(std::string_view pointer, std::string_view message) const {
  const std::string key = spell(steps(pointer));
  return ConfigError(fmt::format("{}: {}{}{}", origin(pointer), key, key.empty() ? "" : ": ", message));
}

Json json_object() {
  Json json;
  json.kind = Json::Kind::object;
  return json;
}

Json json_string(std::string text) {
  Json json;
  json.kind = Json::Kind::string;
  json.text = std::move(text);
  return json;
}

ConfigDocument parse_toml(std::string_view text, const std::string& file) {
  ConfigDocument document;
  try {
    const toml::table table = toml::parse(text, std::string_view(file));
    document.root = Converter(document, file).convert(table, "");
  } catch (const toml::parse_error& e) {
    const auto at = e.source().begin;
    throw ConfigError(fmt::format("{}:{}: not valid TOML (column {}): {}", file, at.line, at.column, e.description()));
  }
  return document;
}

}  // namespace hapax
