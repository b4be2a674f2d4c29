// A workflow from inside: the context of its code. workflow_handle.h has the starter's side.
//
//   Receipt process_order(hapax::Context& ctx, const Order& order) {
//     auto payment = ctx.run(charge_card, order, hapax::key("payment-" + std::to_string(order.id)));
//     ctx.sleep(std::chrono::hours(24));
//     return {payment};
//   }
//
// A workflow is a plain function that survives its worker: its code runs again from the start, and everything it asked
// its Context for before is answered from its history, so that it reaches the same point. Therefore
//
// - given the same answers, the code must ask for the same things in the same order. Clocks, random numbers, files and
//   the network are for tasks, or for Context::now(), random(), uuid() and side_effect();
// - the code must not block and should not take long: wait through the Context;
// - a change of the code that a running workflow would notice needs Context::version(). Without it, the workflow stays
//   suspended with the error NonDeterminism, and continues when a worker has matching code again;
// - the Context is used on the thread that runs the function, and neither by destructors nor behind a noexcept.
//
// A waiting workflow costs its worker only memory. When the memory is needed for others, the function's stack is
// unwound by an exception that is not a std::exception. Code that catches (...) must rethrow it; any further call to
// the Context throws the same exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "hapax/detail/durations.h"
#include "hapax/detail/function.h"
#include "hapax/detail/pointers.h"
#include "hapax/detail/std_function.h"
#include "hapax/detail/update_handler.h"
#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"
#include "hapax/signal.h"
#include "hapax/task.h"

namespace hapax {

class Context;
class Saga;
template <class Input, class Result>
class Workflow;

namespace detail {
class WorkflowRun;
}

// What a workflow has asked for and does not wait for yet. A plain value: copies refer to the same step; valid within
// the function.
template <class T>
class Future {
 public:
  // Waits for its result. Throws StepFailed if it did not complete, and BadPayload if the result is not a T.
  T get() const;

 private:
  friend class Context;
  Future(Context& context, std::int32_t step) : context_(&context), step_(step) {}

  Context* context_;
  std::int32_t step_;
};

// The context of a workflow's code. Only on the thread that runs the code, and only while it runs.
class Context {
 public:
  // Runs a task and waits for its result; start() runs it and continues. By the value that App::task() returned, by the
  // declared function, or by its name, which works for any type that some worker has:
  // ctx.run<std::string>("charge_card", order).
  //
  // A task runs once for this step, however often the workflow is replayed. With hapax::key() the rules of idempotency
  // hold beyond the workflow: a task that was completed under that key returns its stored result without running again.
  //
  // Throws StepFailed when the task has failed (attempts and retries are the task's own), was cancelled or timed out,
  // and BadPayload when its result does not have the requested type.
  template <class Input, class Result>
  Result run(const Task<Input, Result>& task, const std::type_identity_t<detail::Value<Input>>& input,
             const SubmitOptions& options = {}) {
    return start(task, input, options).get();
  }
  template <class Result>
  Result run(const Task<void, Result>& task, const SubmitOptions& options = {}) {
    return start(task, std::monostate(), options).get();
  }
  template <class Result = void, class Input = std::nullptr_t>
  Result run(std::string_view type, const Input& input = {}, const SubmitOptions& options = {}) {
    return start<Result>(type, input, options).get();
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  detail::Plain<Result> run(Result (*function)(Parameters...), const Input& input = {},
                            const SubmitOptions& options = {}) {
    return start(function, input, options).get();
  }

  template <class Input, class Result, class... Rest>
  Result run(const Workflow<Input, Result>&, const Rest&...) {
    static_assert(detail::never<Input>, "hapax: this is a workflow: run it as a step with ctx.run_workflow()");
  }

  template <class Input, class Result>
  Future<Result> start(const Task<Input, Result>& task, const std::type_identity_t<detail::Value<Input>>& input,
                       const SubmitOptions& options = {}) {
    return {*this, start_task(task.name(), to_json(input), options)};
  }
  template <class Result>
  Future<Result> start(const Task<void, Result>& task, const SubmitOptions& options = {}) {
    return start(task, std::monostate(), options);
  }
  template <class Result = void, class Input = std::nullptr_t>
  Future<Result> start(std::string_view type, const Input& input = {}, const SubmitOptions& options = {}) {
    return {*this, start_task(type, to_json(input), options)};
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  Future<detail::Plain<Result>> start(Result (*function)(Parameters...), const Input& input = {},
                                      const SubmitOptions& options = {}) {
    detail::check_step_input<Input, detail::Shape<std::tuple<Parameters...>>>();
    return {*this, start_task(type_of(reinterpret_cast<const void*>(function)), to_json(input), options)};
  }

  // Runs another workflow as a step of this one. hapax::key() gives it your own workflow id; without, it has one
  // derived from this run. It is cancelled with this workflow.
  template <class Input, class Result>
  Result run_workflow(const Workflow<Input, Result>& workflow, const std::type_identity_t<detail::Value<Input>>& input,
                      const SubmitOptions& options = {}) {
    return start_workflow(workflow, input, options).get();
  }
  template <class Result>
  Result run_workflow(const Workflow<void, Result>& workflow, const SubmitOptions& options = {}) {
    return start_workflow(workflow, std::monostate(), options).get();
  }
  template <class Result = void, class Input = std::nullptr_t>
  Result run_workflow(std::string_view type, const Input& input = {}, const SubmitOptions& options = {}) {
    return start_workflow<Result>(type, input, options).get();
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  detail::Plain<Result> run_workflow(Result (*function)(Context&, Parameters...), const Input& input = {},
                                     const SubmitOptions& options = {}) {
    return start_workflow(function, input, options).get();
  }

  template <class Input, class Result>
  Future<Result> start_workflow(const Workflow<Input, Result>& workflow,
                                const std::type_identity_t<detail::Value<Input>>& input,
                                const SubmitOptions& options = {}) {
    return {*this, start_child(workflow.name(), to_json(input), options)};
  }
  template <class Result>
  Future<Result> start_workflow(const Workflow<void, Result>& workflow, const SubmitOptions& options = {}) {
    return start_workflow(workflow, std::monostate(), options);
  }
  template <class Result = void, class Input = std::nullptr_t>
  Future<Result> start_workflow(std::string_view type, const Input& input = {}, const SubmitOptions& options = {}) {
    return {*this, start_child(type, to_json(input), options)};
  }
  template <class Result, class... Parameters, class Input = std::nullptr_t>
  Future<detail::Plain<Result>> start_workflow(Result (*function)(Context&, Parameters...), const Input& input = {},
                                               const SubmitOptions& options = {}) {
    detail::check_step_input<Input, detail::Shape<std::tuple<Context&, Parameters...>, Context>>();
    return {*this, start_child(type_of(reinterpret_cast<const void*>(function)), to_json(input), options)};
  }

  // Waits for all of them, whatever their outcomes, and returns their results in order; nothing for those without one.
  // Then throws StepFailed for the first in order that did not complete. Start each in a separate statement: the
  // compiler chooses the order in which the arguments of one call are evaluated, and steps have an order.
  template <class T>
  auto all(const std::vector<Future<T>>& futures) {
    wait_all(steps_of(futures));
    if constexpr (std::is_void_v<T>) {
      for (const Future<T>& future : futures) future.get();
    } else {
      std::vector<T> results;
      results.reserve(futures.size());
      for (const Future<T>& future : futures) results.push_back(future.get());
      return results;
    }
  }
  template <class... T>
    requires(sizeof...(T) > 0)
  std::tuple<detail::Value<T>...> all(const Future<T>&... futures) {
    wait_all({futures.step_...});
    return {value_of(futures)...};
  }

  // Waits until one of them has an outcome, and returns its index among the arguments; of several, the earliest. The
  // others continue; a wait for a signal still takes the next signal of its name.
  template <class T>
  std::size_t any(const std::vector<Future<T>>& futures) {
    return wait_any(steps_of(futures));
  }
  template <class... T>
    requires(sizeof...(T) > 0)
  std::size_t any(const Future<T>&... futures) {
    return wait_any({futures.step_...});
  }

  // Sleeps, for months if need be: nothing runs during that time. start_sleep() is a timer for any().
  void sleep(Milliseconds duration) { start_sleep(duration).get(); }
  void sleep_until(std::chrono::system_clock::time_point time) { start_sleep_until(time).get(); }
  Future<void> start_sleep(Milliseconds duration) { return {*this, start_timer(duration)}; }
  Future<void> start_sleep_until(std::chrono::system_clock::time_point time) { return {*this, start_timer(time)}; }

  // Waits for a signal (WorkflowHandle::signal) and returns its payload. A signal that arrived earlier is taken, each
  // once, in their order. With a time-out: nothing, if none has arrived by then. A payload that is not a T throws
  // BadPayload; the signal is taken anyway.
  template <class T>
  T wait(const Signal<T>& signal) {
    return start_wait(signal).get();
  }
  template <class T>
  std::optional<detail::Value<T>> wait(const Signal<T>& signal, Milliseconds timeout) {
    return wait_signal<detail::Value<T>>(signal.name, timeout);
  }
  template <class T>
  Future<T> start_wait(const Signal<T>& signal) {
    return start_wait_signal<T>(signal.name);
  }

  // The same by the signal's name alone.
  template <class T = void>
  T wait_signal(std::string_view name) {
    return start_wait_signal<T>(name).get();
  }
  template <class T = std::monostate>
  std::optional<T> wait_signal(std::string_view name, Milliseconds timeout) {
    const std::int32_t step = start_signal_wait(name, timeout);
    const auto value = signal_json(step);
    if (!value) return std::nullopt;
    if constexpr (std::is_same_v<T, std::monostate>) {
      return T{};
    } else {
      return read_step<T>(step, *value);
    }
  }
  template <class T = void>
  Future<T> start_wait_signal(std::string_view name) {
    return {*this, start_signal_wait(name, std::nullopt)};
  }

  // Cancels a step that is open: a timer or a wait for a signal at once, a task or child as App's cancel does. An
  // abandoned wait takes no signal. What waits for the step gets StepFailed with the status "cancelled".
  template <class T>
  void cancel(const Future<T>& future) {
    cancel_step(future.step_);
  }

  // Publishes a value under a name, for others to read (WorkflowHandle::values_json). The last one of a name counts.
  template <class Value>
  void publish(std::string_view name, const Value& value) {
    publish_json(name, to_json(value));
  }

  // Sends a signal to another workflow, once, however often this one is replayed. Throws StepFailed with the type
  // WorkflowNotFound or WorkflowClosed if there is none that could take it.
  template <class T>
  void signal(std::string_view workflow_id, const Signal<T>& signal,
              const std::type_identity_t<detail::Value<T>>& payload = {}) {
    start_signal(workflow_id, signal.name, payload).get();
  }
  template <class Payload = std::nullptr_t>
  void signal(std::string_view workflow_id, std::string_view name, const Payload& payload = {}) {
    start_signal(workflow_id, name, payload).get();
  }
  template <class Payload = std::nullptr_t>
  Future<void> start_signal(std::string_view workflow_id, std::string_view name, const Payload& payload = {}) {
    return {*this, send_signal(workflow_id, name, to_json(payload))};
  }

  // Answers the updates of that name (WorkflowHandle::update) from now on: where the code waits, one after the other,
  // in the order in which they came. The function takes the question, or nothing, and returns the answer; it may use
  // the Context. What it throws refuses the update. An update that came earlier waits for its handler.
  //
  //   ctx.on(reserve_more, [&](int count) { return left -= count; });
  template <class Question, class Answer, class Function>
  void on(const Update<Question, Answer>& update, Function function) {
    if constexpr (detail::HasSignature<Function>) {
      static_assert(std::tuple_size_v<typename detail::Signature<Function>::Parameters> != 1 ||
                        std::is_invocable_v<Function, detail::Value<Question>>,
                    "hapax: the function does not take the question of this update");
      static_assert(
          std::is_void_v<Answer> || std::is_convertible_v<typename detail::Signature<Function>::Result, Answer>,
          "hapax: the function does not return the answer of this update");
    }
    on_update(update.name, detail::update_handler_of(std::move(function)));
  }
  template <class Function>
  void on(std::string_view name, Function function) {
    on_update(name, detail::update_handler_of(std::move(function)));
  }

  // Values that differ between runs of the code, recorded so that a replay gets the same: the time (of the store's
  // clock, when this turn began), a random number, a version 4 UUID, or whatever `function` returns. The function must
  // be quick and must not use the Context; it is called again if the worker dies before its result is stored. What it
  // throws is recorded, too, and thrown as StepFailed.
  std::chrono::system_clock::time_point now();
  std::uint64_t random();
  std::string uuid();
  template <class Function>
  auto side_effect(std::string_view name, Function&& function) -> std::invoke_result_t<Function> {
    using Result = std::invoke_result_t<Function>;
    static_assert(!std::is_void_v<Result>, "hapax: a side effect is recorded by its result; return something");
    const std::string value = record(name, [&] { return to_json(function()); });
    return read_step<Result>(last_step(), value);
  }

  // Asks which version of the code this workflow is on, if the code was changed while workflows were running:
  //
  //   if (ctx.version("ship-before-charge") == 0) { …as it was before… } else { … }
  //
  // Returns 0 if the workflow had passed this point before the question was added, otherwise `current`, for good. Each
  // place that asks is decided by itself.
  std::int32_t version(std::string_view change, std::int32_t current = 1);

  // Ends this run and begins the next one, of the same type and workflow id, with this input and an empty history. For
  // workflows that run forever.
  template <class Input>
  [[noreturn]] void continue_as_new(const Input& input) {
    continue_as(to_json(input));
  }

  std::string workflow_id() const;
  std::string run_id() const;

  // Whether the code is being replayed. For logs only: no command may depend on it.
  bool is_replaying() const;

 private:
  template <class T>
  friend class Future;
  friend class Saga;
  friend class detail::WorkflowRun;
  explicit Context(detail::WorkflowRun& run) : run_(run) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  std::string type_of(const void* function) const;
  std::int32_t start_task(std::string_view type, const std::string& input_json, const SubmitOptions& options);
  std::int32_t start_child(std::string_view type, const std::string& input_json, const SubmitOptions& options);
  std::int32_t start_timer(Milliseconds duration);
  std::int32_t start_timer(std::chrono::system_clock::time_point time);
  std::int32_t start_signal_wait(std::string_view name, std::optional<Milliseconds> timeout);
  void cancel_step(std::int32_t step);
  void on_update(std::string_view name, std::function<std::string(const std::string&)> handler);
  void publish_json(std::string_view name, const std::string& json);
  std::int32_t send_signal(std::string_view workflow_id, std::string_view name, const std::string& payload_json);
  void wait_all(const std::vector<std::int32_t>& steps);
  std::size_t wait_any(const std::vector<std::int32_t>& steps);
  std::string result_json(std::int32_t step);
  std::optional<std::string> signal_json(std::int32_t step);  // absent: it timed out
  std::string record(std::string_view name, const std::function<std::string()>& function);
  std::int32_t last_step() const;  // that was asked for
  void undo_later(std::vector<detail::Undo> steps);
  void undo_now();
  [[noreturn]] void bad_payload(std::int32_t step, const std::string& pointer, const std::string& message) const;
  [[noreturn]] void continue_as(const std::string& input_json);

  // A step's result, converted to the type that the code asks for.
  template <class T>
  T read_step(std::int32_t step, const std::string& json) const {
    try {
      return from_json<T>(json);
    } catch (const detail::Mismatch& mismatch) {
      bad_payload(step, mismatch.at(), mismatch.message());
    }
  }

  template <class T>
  static std::vector<std::int32_t> steps_of(const std::vector<Future<T>>& futures) {
    std::vector<std::int32_t> steps;
    steps.reserve(futures.size());
    for (const Future<T>& future : futures) steps.push_back(future.step_);
    return steps;
  }
  template <class T>
  static detail::Value<T> value_of(const Future<T>& future) {
    if constexpr (std::is_void_v<T>) {
      future.get();
      return {};
    } else {
      return future.get();
    }
  }

  detail::WorkflowRun& run_;
};

template <class T>
T Future<T>::get() const {
  return context_->read_step<T>(step_, context_->result_json(step_));
}

}  // namespace hapax
