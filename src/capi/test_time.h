// An app in memory whose time passes only when it is told to.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "core/time.h"
#include "sdk/test_memory.h"

namespace hapax::capi {

class TestTime {
 public:
  explicit TestTime(Time start) : memory_(std::make_shared<detail::TestMemory>(start)) {}

  Opened opened() const { return detail::opened(memory_); }

  // Lets this much time pass, and lets everything happen at its time: before each step it waits until nobody works any
  // more. One call at a time.
  void advance(Duration duration);

 private:
  void let_work();
  std::optional<Time> next_due() const;

  const std::shared_ptr<detail::TestMemory> memory_;
  std::mutex mutex_;
};

}  // namespace hapax::capi
