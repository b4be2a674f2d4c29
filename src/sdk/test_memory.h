// A store in memory, on a clock that skips the waiting: for tests of programs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/time.h"
#include "engine/local_engine.h"
#include "open/open_engine.h"

namespace hapax::detail {

class SkippingClock final : public Clock {
 public:
  explicit SkippingClock(Time start) : now_ms_(to_ms(start)) {}

  Time now() const override { return from_ms(now_ms_); }
  void move_to(Time time) { now_ms_ = std::max(now_ms_.load(), to_ms(time)); }

 private:
  std::atomic<std::int64_t> now_ms_;
};

// The store reads the clock as long as there is a handle to anything in it.
struct TestMemory {
  explicit TestMemory(Time start) : clock(start), store(open_on(clock)), engine(start_engine(store, {})) {}

  static std::shared_ptr<Store> open_on(const Clock& clock) {
    OpenStoreOptions options;
    options.clock = &clock;
    return open_store("memory:", options);
  }

  SkippingClock clock;
  const std::shared_ptr<Store> store;
  const std::shared_ptr<LocalEngine> engine;
};

inline Opened opened(const std::shared_ptr<TestMemory>& memory) {
  Opened opened;
  opened.engine = std::shared_ptr<Engine>(memory, memory->engine.get());
  return opened;
}

}  // namespace hapax::detail
