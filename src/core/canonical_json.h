// Canonical JSON: RFC 8785 (JCS) with one stricter rule, that integers are exact. It decides which inputs are the same,
// so it must never change: the identity hashes carry the version of this algorithm ("hapax/1").
#pragma once

#include <string>

#include "core/json.h"

namespace hapax {

// The canonical text of a document: members sorted by their UTF-16 code units, no white space, shortest strings,
// numbers as ECMAScript prints them. A number written as an integer keeps every digit (9007199254740993 stays, -0 is
// 0), except that one of 22 digits or more takes ECMAScript's exponent form if that is exact (1 with 21 zeros is 1e+21,
// so that it equals 1e21).
std::string canonical_json(const Json& document);

// A finite double as ECMAScript's Number.prototype.toString prints it.
std::string canonical_number(double value);

// The order of members in canonical JSON: that of the UTF-16 code units of their names, which are UTF-8 here.
bool utf16_less(std::string_view a, std::string_view b);

// Appends a JSON string with the shortest escapes, quotes included. The text must be valid UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace hapax
