// What to undo if a workflow cannot go on.
//
//   hapax::Saga saga(ctx);
//   auto payment = ctx.run(charge, order);
//   saga.undo(refund, payment);
//   auto shelf = ctx.run(reserve, order);
//   saga.undo(release, shelf);
//   ctx.run(ship, order);                    // fails: release runs, then refund
//
// If an exception leaves the scope of the saga (a StepFailed, a BadPayload, CancelRequested, or one of the program's
// own), its steps are undone in reverse order, one after the other: before the code asks its Context for anything else,
// or before the workflow ends. An undo that fails, after all the attempts of its task, does not keep the others from
// running; after them its StepFailed is thrown, or, if the workflow ends, told with its error. If the scope is left
// without an exception, nothing is undone.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hapax/json.h"
#include "hapax/workflow.h"

namespace hapax {

class Saga {
 public:
  explicit Saga(Context& context);
  ~Saga();
  Saga(const Saga&) = delete;
  Saga& operator=(const Saga&) = delete;

  // Runs the task with this input if it comes to that.
  template <class Input, class Result>
  void undo(const Task<Input, Result>& task, const std::type_identity_t<detail::Value<Input>>& input,
            SubmitOptions options = {}) {
    steps_.push_back({task.name(), to_json(input), std::move(options)});
  }
  template <class Result, class... Parameters, class Input>
  void undo(Result (*function)(Parameters...), const Input& input, SubmitOptions options = {}) {
    detail::check_step_input<Input, detail::Shape<std::tuple<Parameters...>>>();
    steps_.push_back({context_.type_of(reinterpret_cast<const void*>(function)), to_json(input), std::move(options)});
  }
  template <class Input>
  void undo(std::string_view type, const Input& input, SubmitOptions options = {}) {
    steps_.push_back({std::string(type), to_json(input), std::move(options)});
  }

  // Undoes everything now, and throws the StepFailed of the first that failed, after all of them.
  void undo_all();

  // There is nothing to undo any more.
  void forget() { steps_.clear(); }

 private:
  Context& context_;
  const int exceptions_;  // on their way when it was made
  std::vector<detail::Undo> steps_;
};

}  // namespace hapax
