#include "core/retry.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/hash.h"

namespace hapax {

Duration backoff(const RetryPolicy& policy, const ExecutionId& id, std::int32_t attempt) {
  const double cap = static_cast<double>(policy.max.count());
  const double pause = static_cast<double>(policy.initial.count()) * std::pow(policy.factor, attempt - 1);
  const double ceiling = std::min(pause, cap);

  std::string seed(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  seed += std::to_string(attempt);
  const Digest digest = sha256(seed);
  std::uint32_t draw;
  std::memcpy(&draw, digest.data(), sizeof draw);
  const double fraction = static_cast<double>(draw) / 4294967296.0;
  return Duration(static_cast<std::int64_t>(ceiling * fraction));
}

}  // namespace hapax
