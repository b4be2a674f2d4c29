#include "core/update.h"

#include <fmt/format.h>

#include "core/canonical_json.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/name.h"

namespace hapax {

namespace {

constexpr std::string_view kSignal = "hapax.update:", kAnswer = "hapax.answer:";

std::optional<Json> parse_object(const std::string& text) {
  try {
    Json document = parse_json(text);
    if (document.is(Json::Kind::object)) return document;
  } catch (const InvalidJson&) {}
  return std::nullopt;
}

std::string text_of(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  return member && member->is(Json::Kind::string) ? member->text : "";
}

}  // namespace

std::string update_signal(std::string_view update) { return std::string(kSignal).append(update); }
std::string update_answer(std::string_view request_key) { return std::string(kAnswer).append(request_key); }
bool is_update_answer(std::string_view value_name) { return value_name.starts_with(kAnswer); }

std::string write_update(std::string_view request_key, const std::optional<std::string>& payload) {
  JsonWriter out;
  out.begin_object();
  if (payload) out.key("payload").raw(*payload);
  out.key("request_key").string(request_key);
  return canonical_json(parse_json(out.end_object().take()));
}

std::optional<ReceivedUpdate> read_update(const std::string& signal_payload) {
  const auto document = parse_object(signal_payload);
  if (!document || text_of(*document, "request_key").empty()) return std::nullopt;
  const Json* payload = document->find("payload");
  return ReceivedUpdate{text_of(*document, "request_key"), payload ? canonical_json(*payload) : ""};
}

std::string write_answer(const UpdateAnswer& answer) {
  JsonWriter out;
  out.begin_object();
  if (answer.error) {
    out.key("error").begin_object();
    out.key("message").string(answer.error->message).key("type").string(answer.error->type).end_object();
  } else if (answer.result) {
    out.key("result").raw(*answer.result);
  }
  return canonical_json(parse_json(out.end_object().take()));
}

std::optional<UpdateAnswer> read_answer(const std::string& value) {
  const auto document = parse_object(value);
  if (!document) return std::nullopt;
  UpdateAnswer answer;
  if (const Json* result = document->find("result")) answer.result = canonical_json(*result);
  if (const Json* error = document->find("error")) {
    answer.error = AttemptError{text_of(*error, "type"), text_of(*error, "message")};
  }
  return answer;
}

std::optional<std::string> check_signal_name(std::string_view name) {
  if (name.starts_with(kInternalName))
    return fmt::format("must not begin with \"{}\", which is Hapax's own", kInternalName);
  return check_idempotency_key(name);
}

std::optional<std::string> check_update_name(std::string_view name) {
  if (name.size() > kMaxUpdateName) {
    return fmt::format("must be 1 to {} bytes long, not {}", kMaxUpdateName, name.size());
  }
  return check_idempotency_key(name);
}

}  // namespace hapax
