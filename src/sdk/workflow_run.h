// One workflow run in memory: its code on a fiber, and its history so far.
//
// The code asks for things through commands, numbered in the order it asks. A command that the history already has is
// compared with it and not sent again; its outcome is the code's answer. So the code is replayed from the start in a
// new WorkflowRun, or continues in a kept one, and asks for the same either way. Knows no engine: events in, commands
// out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sdk/declarations.h"
#include "sdk/fiber.h"

namespace hapax::detail {

inline constexpr std::string_view kNonDeterminism = "NonDeterminism";

// Whether this thread runs the code of a workflow.
bool is_inside_workflow();

class WorkflowRun {
 public:
  // The declarations and the function must outlive it.
  WorkflowRun(const Declarations& declared, const WorkflowFunction& function, const StackPool& stacks,
              const Execution& execution);

  // Tells it the next events, in order. False if they show that its last commands are not what was committed: then it
  // is useless, and the run must be replayed in a new one.
  bool learn(std::span<const Event> events);

  // Runs the code until it cannot continue: its new commands, and how it ended. `now` is the time of the turn. The
  // caller fills in the token and namespace.
  TurnRequest advance(Time now);

  // Whether its code waits for this step, and no other step is open.
  bool waits_only_for(std::int32_t step) const { return open_ == 1 && waits_for_ == step && !outcomes_.contains(step); }

  // Whether its commands may exist already: a resumed run asks for some of its steps again.
  bool was_resumed() const { return was_resumed_; }

  // Tells it, before the commit, that this step is completed: the only event after its last commands.
  void learn_completed(std::int32_t step, const std::optional<std::string>& result);

  std::int64_t known() const { return known_; }  // the latest event that it was told

 private:
  friend class hapax::Context;

  struct Asked {
    Event::Kind kind;
    std::string name;
  };

  // The outcome of a step.
  struct Outcome {
    std::int64_t no = 0;
    Event::Kind kind = Event::Kind::closed;
    Status status = Status::completed;
    std::string value;  // JSON; empty: nothing
    std::unique_ptr<const AttemptError> error;
  };

  // For the Context, on the fiber. Where the code begins a step it is told of a requested cancel instead.
  std::int32_t begin_step(Event command, std::optional<SubmitRequest> start = std::nullopt);
  std::int32_t ask(Event command, std::optional<SubmitRequest> start = std::nullopt);
  std::string record(std::string_view name, const std::function<std::string()>& function);
  std::int32_t version(std::string_view change, std::int32_t current);
  void wait_all(std::span<const std::int32_t> steps);
  std::size_t wait_any(std::span<const std::int32_t> steps);
  const Outcome& wait(std::int32_t step);
  std::string result(std::int32_t step);
  void cancel_step(std::int32_t step);
  void on_update(std::string_view name, std::function<std::string(const std::string&)> handler);
  [[noreturn]] void continue_as(Json input);
  void undo_later(std::vector<Undo> steps);
  void undo_now();
  void begin_call();
  void check_usable() const;

  const Event* recorded() const;  // the command that the history has where the code asks next
  void match(const Event& asked);
  [[noreturn]] void leave_for_good();
  [[noreturn]] void step_failed(std::int32_t step, const Outcome& outcome) const;
  [[noreturn]] void bad_payload(std::int32_t step, const std::string& pointer, const std::string& message) const;
  void suspend_on(std::int32_t step);
  std::optional<std::int64_t> known_when_told() const;
  bool may_be_interrupted(std::int32_t step) const;
  void tell_of_cancel();
  bool answer_update(std::int64_t before);
  void check_nothing_left(const std::string& found);
  void run_code();
  bool confirm(const Event& command);

  const Declarations& declared_;
  const WorkflowFunction& function_;
  const ExecutionId id_;
  const std::string workflow_id_;
  const std::string type_;
  const std::string input_;
  std::optional<std::string> cancel_reason_;  // of a requested cancel; empty: none was given
  bool was_told_of_cancel_ = false;

  std::int64_t known_ = 0;
  std::int64_t learned_ = 0;             // the latest event that learn() brought
  std::map<std::int32_t, Event> ahead_;  // commands of the history that the code has not asked for yet
  std::unordered_map<std::int32_t, Outcome> outcomes_;
  std::vector<Asked> asked_;                    // by step, from 1
  std::deque<Event> unconfirmed_;               // sent, and not yet seen in the history
  std::vector<TurnRequest::Command> commands_;  // of this turn
  Time now_;
  std::int32_t waits_for_ = 0;
  std::int32_t open_ = 0;  // steps it has asked for of which nothing has come yet
  bool in_side_effect_ = false;

  // Handlers of updates. Each has a wait for the next one open: `step`.
  struct UpdateHandler {
    std::string name;
    std::function<std::string(const std::string&)> function;  // JSON in, JSON out
    std::int32_t step = 0;
  };
  std::deque<UpdateHandler> handlers_;
  bool in_handler_ = false;

  bool was_resumed_ = false;
  std::thread::id running_on_;  // while its code runs
  std::deque<Undo> to_undo_;    // of sagas that an exception has left, in the order in which they are undone
  bool is_undoing_ = false;

  std::optional<AttemptError> stuck_;
  std::optional<Json> continued_;
  std::optional<AttemptError> failed_;
  std::optional<std::string> result_;

  Fiber fiber_;  // last: its stack is unwound while all of the above is still there
};

}  // namespace hapax::detail
