#include "capi/calls.h"

#include <string_view>

#include "core/field.h"
#include "core/json.h"

namespace hapax::capi {

Message read_message(const char* method, const char* target, const char* headers_json, const char* body,
                     std::size_t size) {
  using Place = InvalidField::Place;
  if (method == nullptr || *method == '\0') throw InvalidField(Place::parameter, "method", "is required");
  if (target == nullptr || *target != '/') throw InvalidField(Place::parameter, "target", "must begin with a slash");
  if (body == nullptr && size > 0) throw InvalidField(Place::parameter, "body", "is NULL, but its size is not 0");
  Message message{method, target, {}, size > 0 ? std::string(body, size) : std::string()};
  if (headers_json == nullptr || *headers_json == '\0') return message;
  Json headers = parse_json(headers_json);
  if (!headers.is(Json::Kind::object)) throw InvalidField(Place::parameter, "headers", "must be a JSON object");
  for (auto& [name, value] : headers.members) {
    if (!value.is(Json::Kind::string)) throw InvalidField(Place::header, name, "must be a string");
    message.headers.emplace_back(std::move(name), std::move(value.text));
  }
  return message;
}

}  // namespace hapax::capi
