// A clock that stands still until a test moves it.
#pragma once

#include <atomic>

#include "core/time.h"

namespace hapax {

class ManualClock final : public Clock {
 public:
  static constexpr Time kStart = from_ms(1'767'225'600'000);  // 2026-01-01T00:00:00.000Z

  Time now() const override { return from_ms(now_ms_.load()); }
  void advance(Duration by) { now_ms_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_ms_{to_ms(kStart)};
};

}  // namespace hapax
