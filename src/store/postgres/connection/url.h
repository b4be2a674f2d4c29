// Parses a postgres:// URL: libpq's part, and Hapax's own.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "store/postgres/fast/switches.h"

namespace hapax::postgres {

struct Url {
  // For libpq, one for each host of the URL, to be tried in turn: only servers that take writes, and a dead one is
  // noticed.
  std::vector<std::string> hosts;
  Duration connect_timeout{10'000};  // of each address
  std::string schema = "hapax";
  bool pooled = false;
  fast::Switches fast;
};

// Throws Failure::misuse with a sentence that says what is wrong.
Url parse_url(const std::string& url);

}  // namespace hapax::postgres
