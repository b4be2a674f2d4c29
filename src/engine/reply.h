// How the engine answers: one callback, on an engine thread, with the value or the failure.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <variant>

namespace hapax {

template <class T>
class Answer {
 public:
  Answer(T value) : value_(std::move(value)) {}
  Answer(std::exception_ptr failure) : value_(std::move(failure)) {}

  // The value, or the failure thrown.
  T get() && {
    if (auto* failure = std::get_if<std::exception_ptr>(&value_)) std::rethrow_exception(*failure);
    return std::get<T>(std::move(value_));
  }

 private:
  std::variant<T, std::exception_ptr> value_;
};

// Must not block: it runs between two commits.
template <class T>
using Reply = std::function<void(Answer<T>)>;

// A call that waits. Dropping the handle changes nothing; cancel() ends the wait with the answer "nothing" if it still
// lasts, so that no task is handed to somebody who has hung up.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual void cancel() = 0;
};

// Answers with what `check` throws. False if it throws nothing: then the verb goes on, and answers itself.
template <class T, class Check>
bool is_refused(const Reply<T>& reply, Check&& check) {
  try {
    check();
    return false;
  } catch (...) {
    reply(std::current_exception());
    return true;
  }
}

// Calls `start` with a reply, waits, and gives the value or throws: the same verb for a caller that may block.
template <class T, class Start>
T await(Start&& start) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  start(Reply<T>([promise](Answer<T> answer) {
    try {
      promise->set_value(std::move(answer).get());
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }));
  return future.get();
}

}  // namespace hapax
