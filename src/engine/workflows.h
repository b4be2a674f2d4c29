// Workflows: committing turns, steps within their turn, history, waiting for the end. Part of Engine: see engine.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/json.h"
#include "engine/reply.h"
#include "engine/submitting.h"
#include "store/store.h"

namespace hapax {

// A turn as the worker words it: what the code asked for, and how it stands. See Turn in store/store.h.
struct TurnRequest {
  // A task that its worker began before the turn was committed: see WorkflowVerbs::begin_within_turn().
  struct WithinTurn {
    std::optional<Submission> submission;  // absent: of a worker elsewhere; it follows from `start`
    Turn::Begun begun;
  };
  struct Command {
    Event event;                         // kind, step, name, and until or value
    std::optional<SubmitRequest> start;  // of a task or child: what to submit
    std::optional<WithinTurn> within_turn = std::nullopt;
  };
  struct Continued {
    Json input;  // of the next run
  };

  LeaseToken token;
  std::string name_space;
  std::shared_ptr<const Execution> run =
      nullptr;                 // as it was claimed, where the caller still has it; not sent to a server
  std::optional<Report> step;  // that ends with this turn, which follows it unclaimed; the token is the last turn's
  std::int64_t seen = 0;       // the latest event that this turn knew
  std::vector<Command> commands;
  std::variant<Turn::Suspended, Turn::Unfinished, Turn::Completed, Turn::Failed, Turn::Stuck, Continued> end;
};

// The worker that would begin a step within its turn.
struct TurnWorker {
  std::string name_space;
  const std::vector<std::string>& queues;  // that this worker takes tasks of
  std::string worker;
  Duration lease{60'000};
};

// What workers elsewhere may begin within their turns, without asking for each step. It comes with the claim of a turn,
// and is good for a moment.
struct StepsWithinTurns {
  std::vector<std::string> queues;        // whose steps may begin
  std::vector<std::string> except_types;  // but not those of these types
};

// A signal that the code answers.
struct UpdateRequest {
  std::string name_space;
  std::string workflow_id;
  std::string name;
  std::string request_key;
  std::optional<std::string> payload = std::nullopt;  // JSON
};

struct UpdateOutcome {
  enum class State : std::uint8_t {
    pending,   // not yet
    answered,  // with `result`
    refused,   // with `error`
    closed     // the workflow was closed before it answered
  };

  ControlOutcome delivery;  // the rest counts where it is done
  State state = State::pending;
  std::optional<std::string> result = std::nullopt;  // JSON
  std::optional<AttemptError> error = std::nullopt;
};

class WorkflowVerbs {
 public:
  virtual ~WorkflowVerbs() = default;

  virtual void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) = 0;

  // A shortcut for quick steps: lets the worker that has the turn of `run` begin a task that the turn asks for, before
  // the turn is committed. Answers with the attempt as a claim would hand it out, and notes it in the command. Only for
  // a task that is claimable once its turn is committed (no identity, limit, concurrency key, delay, timeout, deadline)
  // and has nothing before it in its queue. Nothing: the task goes the ordinary way. The worker commits the turn as
  // soon as the task has ended, or takes longer than a moment.
  virtual std::optional<Execution> begin_within_turn(const Execution& /*run*/, const TurnWorker& /*worker*/,
                                                     TurnRequest::Command& /*command*/) {
    return std::nullopt;
  }

  // The same rules for a worker that this engine serves from afar, about the queues and types that it claims; no types:
  // any.
  virtual StepsWithinTurns steps_within_turns(const std::string& /*name_space*/,
                                              const std::vector<std::string>& /*queues*/,
                                              const std::vector<std::string>& /*types*/) {
    return {};
  }

  // The latest run of a workflow, and a run's events after that one.
  virtual std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) = 0;
  virtual std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                                     std::int32_t limit) = 0;
  // What its latest run has published, by name: JSON. Nothing if there is no such workflow.
  using Values = std::map<std::string, std::string>;
  virtual std::optional<Values> values(const std::string& name_space, const std::string& workflow_id) = 0;
  // Delivers an update, once under its request key, and waits for the answer of the code, at most this long. Sent again
  // under its key, it waits again, and gets the same answer.
  virtual std::shared_ptr<Waiting> update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) = 0;
  // As ReadVerbs::wait_closed(), over all runs that the workflow continues as.
  virtual std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id,
                                                 Duration wait, Reply<std::optional<Execution>> reply) = 0;
};

}  // namespace hapax
