// A function on its own stack that can suspend and continue on any thread.
//
// Invariants
// - Only one thread at a time resumes a fiber, and only the fiber itself suspends it.
// - A fiber that is dropped before it ended is unwound: suspend() throws Unwind, now and whenever it is called again,
//   so that every destructor on its stack runs, whatever the function catches on the way.
// - What the C++ runtime keeps per thread about exceptions belongs to the fiber while it runs: it may suspend within a
//   catch block.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace hapax::detail {

// Not a std::exception, so that no catch clause of a program handles it.
struct Unwind {};

// Stacks, each with a guard page below it, kept for the next fiber when one ends. May be shared by all threads.
class StackPool {
 public:
  explicit StackPool(std::size_t stack_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  class Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  const std::shared_ptr<Impl> impl_;
};

class Fiber {
 public:
  // `body` starts at the first resume(). It must not throw anything but Unwind.
  Fiber(const StackPool& stacks, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends or ends.
  void resume();
  bool ended() const;

  // Called by the body: back to the resumer. check_wanted() only throws Unwind where suspend() would.
  void suspend();
  void check_wanted() const;

  class Impl;

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hapax::detail
