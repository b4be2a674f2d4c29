// The headers Accept and Accept-Encoding: the form of an answer that a client prefers.
#pragma once

#include <cstdint>
#include <string_view>

namespace hapax::http {

enum class Coding : std::uint8_t { identity, gzip, deflate };

struct Preferences {
  bool problem = false;  // errors by RFC 9457
  Coding coding = Coding::identity;
};

// Whether errors are sent as application/problem+json: the client names it and does not prefer application/json. A
// wildcard names nothing. Successful answers are JSON either way, so a client that names both means errors.
bool prefers_problem(std::string_view accept);

// The preferred coding; gzip among equals. Identity if nothing else is acceptable.
Coding choose_coding(std::string_view accept_encoding);

}  // namespace hapax::http
