// What the measures submit: the same tasks and keys as load.mjs.
#pragma once

#include <fmt/format.h>

#include <boost/describe.hpp>
#include <cstdint>
#include <string>

namespace hapax::bench {

// About 100 bytes of JSON.
struct Payload {
  std::int64_t i;
  std::string user, action, note;
};
BOOST_DESCRIBE_STRUCT(Payload, (), (i, user, action, note))

inline Payload payload_of(std::int64_t i) { return {i, fmt::format("user-{:07}", i), "resize", std::string(40, 'x')}; }
inline std::string key_of(std::int64_t i) { return fmt::format("order-2026-11-15-{:09}", i); }

}  // namespace hapax::bench
