// Bodies under a Content-Encoding.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http/negotiation.h"

namespace hapax::http {

// The coding of that name (in any case), if it is supported.
std::optional<Coding> parse_coding(std::string_view name);
std::string_view to_string(Coding coding);

// Fast rather than small. The coding is not identity.
std::string compress(std::string_view bytes, Coding coding);

// Decodes a body by its Content-Encoding (empty: not encoded). Throws RequestError: 415 for an unknown coding, 413 if
// the decompressed body is longer than `limit`, 400 if it is damaged. Never holds more than the limit.
std::string decode_body(std::string body, std::string_view content_encoding, std::size_t limit);

}  // namespace hapax::http
