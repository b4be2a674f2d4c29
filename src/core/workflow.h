// A workflow's history: commands and outcomes, step by step.
//
// The code of a workflow asks for things through commands; each has a step number, counted from 1 in the order in which
// the code asks. At most one later event is the outcome of a step. Replaying the code against the history gives it the
// same answers in the same order, so it asks for the same things again. That is how a workflow survives its worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/time.h"

namespace hapax {

struct Event {
  // Stored by number: do not change the numbers.
  enum class Kind : std::uint8_t {
    // Commands: what the code asked for.
    task = 0,          // `name` is its type, `execution` the task that stands for it; see is_deduplicated()
    sleep = 1,         // `until`
    wait_signal = 2,   // `name` is the signal's; `until` if the wait has an end
    child = 3,         // `name` is its type, `key` its workflow id, `execution` its run
    side_effect = 4,   // `name` says what it was; `value` is what the code got
    version = 5,       // `name` is the change's; `value` the version that the code got
    cancel_step = 17,  // `value` is the step's number
    publish = 19,      // `name` and `value`, for others to read
    send_signal = 20,  // `name` is the signal's, `key` the workflow id that it goes to, `value` its payload

    // The outcomes of steps.
    closed = 6,  // of a task or child: `status`, and `value` (its result) or `error`
    fired = 7,   // a sleep has ended, or a wait has timed out
    signal = 8,  // `name`, `value`; of step 0 as long as no step waits for it

    // What happened to the workflow itself.
    completed = 9,  // `value`
    failed = 10,    // `error`
    cancelled = 11,
    timed_out = 12,
    stuck = 13,  // its code does not match this history: `error`
    resumed = 14,
    forked = 15,           // from `execution`, at the step `step`
    continued = 16,        // as `execution`
    cancel_requested = 18  // the code may answer it; `value` is the reason
  };

  std::int64_t no = 0;  // rising; there may be gaps
  Time at;
  Kind kind = Kind::task;
  std::int32_t step = 0;
  std::string name;
  std::optional<std::string> key;
  std::optional<ExecutionId> execution;
  std::optional<Time> until;
  std::optional<Status> status;
  std::optional<std::string> value;  // JSON
  std::optional<AttemptError> error;
  bool damaged = false;  // its stored bytes do not match their checksum: it may not be handed out

  bool operator==(const Event&) const = default;

  // The size of its texts, which bounds answers.
  std::int64_t payload_bytes() const;
};

std::string_view to_string(Event::Kind kind);
std::optional<Event::Kind> parse_event_kind(std::string_view text);

constexpr bool is_command(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::task:
    case Event::Kind::sleep:
    case Event::Kind::wait_signal:
    case Event::Kind::child:
    case Event::Kind::side_effect:
    case Event::Kind::version:
    case Event::Kind::cancel_step:
    case Event::Kind::publish:
    case Event::Kind::send_signal: return true;
    default: return false;
  }
}
// For a task or child: the step shares an earlier execution by its identity. The command's `status` is the status of
// that execution when the step found it; a step with its own execution has none.
constexpr bool is_deduplicated(const Event& event) { return is_command(event.kind) && event.status.has_value(); }
constexpr bool is_of_step(Event::Kind kind) {  // the outcome of a step
  return kind == Event::Kind::closed || kind == Event::Kind::fired || kind == Event::Kind::signal;
}
constexpr bool is_outcome(const Event& event) { return event.step > 0 && is_of_step(event.kind); }

// The name of a step and the id of its execution, which is made from the name, so that it cannot start twice. The id
// begins with the run's time, so that it sorts near the run.
std::string step_name(const ExecutionId& run, std::string_view type, std::int32_t step);
ExecutionId step_id(const ExecutionId& run, std::string_view type, std::int32_t step);
bool is_step_id(const ExecutionId& id);

// A turn that is sent again gets the first answer as long as its run has had fewer than this many turns since.
inline constexpr std::size_t kRememberedTurns = 16;

// A turn that lost its worker this many times in a row is not handed out any more: its run is stuck with this error,
// until somebody resumes it.
inline constexpr std::int32_t kMaxLostTurns = 3;
inline constexpr std::string_view kWorkerLost = "WorkerLost";
inline bool waits_for_resume(const Execution& run) {
  return run.status == Status::suspended && run.run.stuck > 0 && run.error && run.error->type == kWorkerLost;
}

// The error type of code that ends because of a requested cancel, which it did not answer.
inline constexpr std::string_view kCancelRequested = "CancelRequested";

// Remembers the turn whose lease the run has, with the run's status as its answer.
void remember_turn(Execution& run);
// The answer to a turn that was committed before. Absent: it is not remembered.
std::optional<Status> answer_before(const Execution& run, const LeaseToken& turn);

// The step that a cancel_step command names; 0: none.
std::int32_t cancelled_step(const Event& command);

// The workflow id of a child or a fork that was given none.
std::string child_workflow_id(const ExecutionId& run, std::int32_t step);
std::string fork_workflow_id(std::string_view workflow_id, std::string_view request_key);

// Cuts a history back so that its workflow can continue: removes the failures of steps that ended it. Those are the
// ones the code met after its last command; or, if it failed with the error StepFailed, the last one, together with
// what the code asked for in response to it (a compensation, say). A failure that the code had handled stays.
struct Rewound {
  std::vector<Event> kept;
  std::vector<Event> signals;  // among them: those whose wait was removed, as events of step 0 again
  bool changed = false;
};
Rewound rewind(const std::vector<Event>& events);

}  // namespace hapax
