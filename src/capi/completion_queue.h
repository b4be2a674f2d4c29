// Completions on their way to the program, and the descriptor that is readable while there are some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "hapax/capi.h"
#include "http/message.h"

namespace hapax::capi {

// Makes the answer. Called once, on the thread that drains it. Does not throw.
using MakeAnswer = std::function<http::Response()>;

struct Completion {
  std::uint64_t token = 0;
  std::int32_t kind = HAPAX_ANSWER;
  hapax_worker* worker = nullptr;
  MakeAnswer make;
  std::shared_ptr<const void> maker = nullptr;  // what `make` refers to
};

// The answer where there is none: status 0, {"error", "message", "safe_to_retry"}.
http::Response no_answer(std::string_view error, std::string_view message, bool safe_to_retry);

// Fills in `out`; its memory is freed by release().
void hand_over(const Completion& completion, hapax_completion& out);
void release(hapax_completion& completion);

// Safe to use from any thread.
class CompletionQueue {
 public:
  // Throws std::system_error if there is no descriptor left.
  explicit CompletionQueue(std::size_t max_calls);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Counts a call that will be answered here. False: there are too many, and refuse() answers it.
  bool begin_call();
  // Costs next to no memory, because a program may make such calls without end.
  void refuse(std::uint64_t token);

  void answer(Completion completion);  // of a call that was counted
  void tell(Completion completion);    // anything else

  std::size_t drain(hapax_completion* out, std::size_t max);

  // Makes all answers now: what they refer to is about to end.
  void settle();

  // Drops everything from now on.
  void end();

  int descriptor() const { return descriptor_; }

 private:
  struct Waiting {
    Completion completion;
    bool is_call = false;
  };

  void put(Waiting waiting);
  void signal();
  void unsignal();

  const int descriptor_;
  const std::size_t max_calls_;
  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  std::deque<std::uint64_t> refused_;
  std::size_t calls_ = 0;
  bool is_signalled_ = false;
  bool has_ended_ = false;
};

}  // namespace hapax::capi
