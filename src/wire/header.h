// Text in paths and headers, in both directions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hapax::wire {

// Percent-encodes everything but letters, digits and -._~ for a path segment or a query value.
std::string percent_encode(std::string_view text);

// The header Idempotency-Key holds a key as it is, or as a string of RFC 8941: "abc" in quotes, with \" and \\. Every
// key without control characters has such a form: UTF-8 bytes are allowed between quotes too.
std::string write_key_header(std::string_view key);

// Nothing if it begins with a quote and is not such a string.
std::optional<std::string> read_key_header(std::string_view header);

}  // namespace hapax::wire
