// The requests of a store that is paid by the request.
#pragma once

#include <atomic>
#include <cstdint>

namespace hapax {

// How many were sent, by price class; and how many of all of them failed. May be read at any time.
struct RequestCounts {
  std::atomic<std::int64_t> put = 0, get = 0, list = 0, remove = 0;
  std::atomic<std::int64_t> refused = 0;  // PUTs whose condition did not hold
  std::atomic<std::int64_t> failed = 0;   // no answer, or one that says 5xx or 429
};

}  // namespace hapax
