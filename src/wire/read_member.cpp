#include "wire/read_member.h"

#include "core/canonical_json.h"

#include <fmt/format.h>

#include "core/failure.h"

namespace hapax::wire {

void malformed(std::string_view name) {
  throw Failure(Failure::Code::corrupt,
                fmt::format("the server's answer has no proper \"{}\": is it a Hapax server of this version?", name));
}

const Json* present(const Json& document, std::string_view name) {
  const Json* member = document.find(name);
  return member && !member->is(Json::Kind::null) ? member : nullptr;
}

std::optional<std::string> text(const Json& document, std::string_view name) {
  const Json* member = present(document, name);
  if (!member) return {};
  if (!member->is(Json::Kind::string)) malformed(name);
  return member->text;
}

std::string required_text(const Json& document, std::string_view name) {
  auto value = text(document, name);
  if (!value) malformed(name);
  return *std::move(value);
}

bool flag(const Json& document, std::string_view name) {
  const Json* member = document.find(name);
  return member && member->is(Json::Kind::boolean) && member->boolean;
}

std::int64_t integer(const Json& document, std::string_view name, std::int64_t absent) {
  const Json* member = present(document, name);
  if (!member) return absent;
  const auto value = member->as_int();
  if (!value) malformed(name);
  return *value;
}

AttemptError read_error(const Json& document) {
  AttemptError error{required_text(document, "type"), required_text(document, "message"), text(document, "stack")};
  if (const Json* details = document.find("details")) error.details = canonical_json(*details);
  return error;
}

}  // namespace hapax::wire
