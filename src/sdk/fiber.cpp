#include "sdk/fiber.h"

#include <cxxabi.h>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "sdk/overflow.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAPAX_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HAPAX_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAPAX_ASAN 1
#elif __has_feature(thread_sanitizer)
#define HAPAX_TSAN 1
#endif
#endif

#if defined(HAPAX_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(HAPAX_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace hapax::detail {

namespace {

namespace context = boost::context;

constexpr std::size_t kIdleStacks = 128;  // kept for the next fibers

// The exceptions that are being handled on this stack; the runtime keeps them per thread. The layout is that of the
// Itanium ABI.
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

void swap_exceptions(Exceptions& other) {
  void* const of_thread = abi::__cxa_get_globals();
  Exceptions mine;
  std::memcpy(&mine, of_thread, sizeof mine);
  std::memcpy(of_thread, &other, sizeof other);
  other = mine;
}

// What the sanitizers must know about a change of stacks: called before and after it, on either side.
class Side {
 public:
  void leaving_to([[maybe_unused]] Side& other, [[maybe_unused]] bool for_good = false) {
#if defined(HAPAX_ASAN)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, other.bottom_, other.size_);
#elif defined(HAPAX_TSAN)
    if (!tsan_) tsan_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(other.tsan_, 0);
#endif
  }

  void arrived_from([[maybe_unused]] Side& other) {
#if defined(HAPAX_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack_, &other.bottom_, &other.size_);
#endif
  }

  void is_fiber([[maybe_unused]] const context::stack_context& stack) {
#if defined(HAPAX_ASAN)
    bottom_ = static_cast<char*>(stack.sp) - stack.size;
    size_ = stack.size;
#elif defined(HAPAX_TSAN)
    tsan_ = __tsan_create_fiber(0);
    owned_ = true;
#endif
  }

  // Each resume may be on another thread.
  void is_resumer() { *this = Side(); }

  void ended() {
#if defined(HAPAX_TSAN)
    if (owned_) __tsan_destroy_fiber(tsan_);
    owned_ = false;
#endif
  }

 private:
#if defined(HAPAX_ASAN)
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
#elif defined(HAPAX_TSAN)
  void* tsan_ = nullptr;
  bool owned_ = false;
#endif
};

}  // namespace

class StackPool::Impl {
 public:
  explicit Impl(std::size_t stack_bytes) : stacks_(stack_bytes) {}
  ~Impl() {
    for (context::stack_context& stack : idle_) stacks_.deallocate(stack);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  context::stack_context allocate() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return stacks_.allocate();
    context::stack_context stack = idle_.back();
    idle_.pop_back();
#if defined(HAPAX_ASAN)
    const std::size_t guard = context::stack_traits::page_size();
    ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - stack.size + guard, stack.size - guard);
#endif
    return stack;
  }

  void deallocate(context::stack_context& stack) {
    std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleStacks) {
      idle_.push_back(stack);
    } else {
      stacks_.deallocate(stack);
    }
  }

 private:
  std::mutex mutex_;
  context::protected_fixedsize_stack stacks_;
  std::vector<context::stack_context> idle_;
};

StackPool::StackPool(std::size_t stack_bytes) : impl_(std::make_shared<Impl>(stack_bytes)) {}
StackPool::~StackPool() = default;

namespace {

// The pool as Boost.Context wants it: a value that is copied onto the stack it has allocated.
struct PooledStack {
  std::shared_ptr<StackPool::Impl> pool;

  context::stack_context allocate() { return pool->allocate(); }
  void deallocate(context::stack_context& stack) {
    const auto keep = pool;  // this object lies on the stack that is given back
    keep->deallocate(stack);
  }
};

}  // namespace

class Fiber::Impl {
 public:
  Impl(const StackPool& stacks, std::function<void()> body) : body_(std::move(body)) {
    PooledStack pooled{stacks.impl()};
    const context::stack_context stack = pooled.allocate();
    inside_.is_fiber(stack);
    lowest_ = static_cast<char*>(stack.sp) - stack.size;
    bytes_ = stack.size;
    // Boost already enters the fiber here, and returns: the variables that AddressSanitizer gives its first function
    // must not be this thread's, which may end before the fiber does.
    outside_.leaving_to(inside_);
    other_ = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), std::move(pooled),
                            [this](context::fiber&& resumer) { return run(std::move(resumer)); });
    inside_.arrived_from(outside_);
    inside_.leaving_to(outside_);
    outside_.arrived_from(inside_);
  }

  ~Impl() {
    unwinding_ = true;
    while (!ended_) resume();
    inside_.ended();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void resume() {
    outside_.is_resumer();
    swap_exceptions(exceptions_);
    running_on_stack(lowest_, bytes_);
    outside_.leaving_to(inside_);
    other_ = std::move(other_).resume();
    outside_.arrived_from(inside_);
    running_on_stack(nullptr, 0);
    swap_exceptions(exceptions_);
  }

  void suspend() {
    check_wanted();
    inside_.leaving_to(outside_);
    other_ = std::move(other_).resume();
    inside_.arrived_from(outside_);
    check_wanted();
  }

  void check_wanted() const {
    if (unwinding_) throw Unwind();
  }

  bool ended() const { return ended_; }

 private:
  context::fiber run(context::fiber&& resumer) {
    other_ = std::move(resumer);
    inside_.arrived_from(outside_);
    try {
      if (!unwinding_) body_();
    } catch (const Unwind&) {
      // Dropped: nothing more to do.
    }
    ended_ = true;
    inside_.leaving_to(outside_, true);
    return std::move(other_);
  }

  const std::function<void()> body_;
  context::fiber other_;  // from outside the fiber, from inside who resumed it
  Side inside_, outside_;
  const void* lowest_ = nullptr;  // of its stack
  std::size_t bytes_ = 0;
  Exceptions exceptions_;  // of whichever side is not running
  bool ended_ = false;
  bool unwinding_ = false;
};

Fiber::Fiber(const StackPool& stacks, std::function<void()> body)
    : impl_(std::make_unique<Impl>(stacks, std::move(body))) {}
Fiber::~Fiber() = default;
void Fiber::resume() { impl_->resume(); }
bool Fiber::ended() const { return impl_->ended(); }
void Fiber::suspend() { impl_->suspend(); }
void Fiber::check_wanted() const { impl_->check_wanted(); }

}  // namespace hapax::detail
