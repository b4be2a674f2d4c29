// What a client would like an answer to look like: the headers Accept and Accept-Encoding.
#pragma once

#include <cstdint>
#include <string_view>

namespace hapax::http {

enum class Coding : std::uint8_t { identity, gzip, deflate };

struct Preferences {
  bool problem = false;  // errors by RFC 9457
  Coding coding = Coding::identity;
};

// Whether errors come as application/problem+json: it is named, and not liked less than application/json. A wildcard
// names nothing. Successful answers are JSON either way, so a client that names both means the one for errors.
bool prefers_problem(std::string_view accept);

// The coding that is liked best; gzip among equals. Identity if nothing else is acceptable.
Coding choose_coding(std::string_view accept_encoding);

}  // namespace hapax::http
