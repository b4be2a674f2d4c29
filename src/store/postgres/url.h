// A postgres:// URL, taken apart: what libpq understands, and what is Hapax's own.
#pragma once

#include <string>

namespace hapax::postgres {

struct Url {
  std::string conninfo;  // for libpq: only servers that take writes, and a dead one is noticed
  std::string schema = "hapax";
  bool pooled = false;
};

// Throws Failure::misuse with a sentence that says what is wrong.
Url parse_url(const std::string& url);

}  // namespace hapax::postgres
