// Turns of workflows. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/execution.h"
#include "core/lease.h"
#include "core/report.h"
#include "core/workflow.h"
#include "store/effects.h"
#include "store/submitting.h"
#include "store/working.h"

namespace hapax {

// What a worker hands back when the code of a workflow cannot continue: its commands, and how it ended.
struct Turn {
  struct Suspended {};  // it waits for what it asked for
  // It is not over: what it has done so far is kept, and it continues under the same lease, still running. If something
  // has happened to the run that this turn does not know, the turn is over anyway, and the run pending.
  struct Unfinished {};
  struct Completed {
    std::optional<std::string> result;  // JSON
  };
  struct Failed {
    AttemptError error;
  };
  // Its code does not match the history, or the worker does not know its type. It stays suspended and is tried again.
  struct Stuck {
    AttemptError error;
  };
  // Its next run, under the same workflow id, begins.
  struct Continued {
    ExecutionId id;     // of the next run, fresh for every turn
    std::string input;  // canonical JSON
    InputHash input_hash;
  };

  // A task that the worker began within the turn, before either was stored: its first attempt, under a lease that the
  // worker made. Only for a task that is claimable at once, without limits (see Engine::begin_step). It is stored as if
  // it had been claimed at the moment of this commit. If a task of its id exists, the turn is not accepted.
  struct Begun {
    LeaseSecret secret;
    std::string worker;
    Duration lease{60'000};
    std::optional<Report::Completed> completed = std::nullopt;  // absent: it is still running
  };

  // A task or child that a command asks for. Its id, parent, step and parent_workflow_id are the store's to give.
  struct Start {
    std::int32_t step = 0;
    Submission submission;
    std::optional<Begun> begun = std::nullopt;
  };

  LeaseToken token;
  std::string name_space;  // of the reporter; empty: any
  // The run as it was claimed, if the caller still has it: saves the store reading it.
  std::shared_ptr<const Execution> claimed = nullptr;
  // A turn that was not claimed. The worker that had the workflow's last turn, whose token this is, ends a step that
  // the workflow waits for, with this report, and continues in the same commit, as the turn token.next(). That counts
  // only if the step's end is all that has happened since: it has the number `seen`. Otherwise the step ends, and the
  // turn can be claimed.
  std::optional<Report> step;
  std::int64_t seen = 0;      // the latest event that this turn knew
  std::vector<Event> events;  // its commands in order, steps counted on from the run's last; and outcomes known at once
  std::vector<Start> starts;  // for the tasks and children among them
  std::variant<Suspended, Unfinished, Completed, Failed, Stuck, Continued> end;
};

struct TurnOutcome {
  bool accepted = false;              // false: the lease is lost, nothing changed but what `step` says
  Status status = Status::failed;     // where accepted: of the workflow now
  std::optional<FinishOutcome> step;  // of the step that was ended; its effects are with those below
  Effects effects;
  // The run, now closed by this turn, if the store has it at hand: those who wait for it need not read it.
  std::optional<Execution> run = std::nullopt;

  bool operator==(const TurnOutcome& other) const {
    return accepted == other.accepted && status == other.status && step == other.step && effects == other.effects;
  }
};

class StoreTurns {
 public:
  virtual ~StoreTurns() = default;

  // Appends the turn to its workflow's history, starts what it asked for and sets its status, as one.
  virtual std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns, WaitingClaims& waiters) = 0;
  std::vector<TurnOutcome> commit_turns(std::span<const Turn> turns) {
    WaitingClaims none;
    return commit_turns(turns, none);
  }
};

}  // namespace hapax
