// The XML of S3's answers, as far as it matters here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/s3/object_store.h"

namespace hapax {

// The answer to ListObjectsV2 with encoding-type=url. Nothing if it is not one.
std::optional<Listing> parse_listing(std::string_view xml);

// What an error is called, and what it says; empty where the answer does not say.
struct S3Error {
  std::string code, message;
};
S3Error parse_error(std::string_view xml);

// The elements of that name directly under the root, as text. Nothing if it is not XML.
std::optional<std::vector<std::string>> children(std::string_view xml, std::string_view name);

// The text of the first element of that name, anywhere; absent if there is none.
std::optional<std::string> text_of(std::string_view xml, std::string_view name);

std::string escape_xml(std::string_view text);

}  // namespace hapax
