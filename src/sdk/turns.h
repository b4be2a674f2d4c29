// Turns of workflows: from a claim to a commit.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sdk/app_state.h"
#include "sdk/attempt.h"
#include "sdk/run_cache.h"

namespace hapax::detail {

inline constexpr std::size_t kReplayStackBytes = 1024 * 1024;  // for tests: more than workers have

// A running turn: what it has asked for since its last commit, and the run, in case it continues.
struct OpenTurn {
  std::unique_ptr<WorkflowRun> run;  // null: there is none
  TurnRequest request;
  // No worker was lost in this turn before. Otherwise its steps begin the ordinary way, which counts their attempts.
  bool is_first_try = false;

  // The command for the task that the code waits for alone, and that it has asked for in this turn, if any; it is then
  // the last.
  TurnRequest::Command* lone_step();
};

class Turns {
 public:
  // The app must outlive it.
  Turns(AppState& app, std::size_t kept_runs, std::size_t stack_bytes);

  // Runs the code: continues the kept run, or reads the history and replays. Throws Failure if the history cannot be
  // read.
  OpenTurn open(const Execution& claimed, const std::vector<Event>& events);

  // The lone step was begun and completed within the turn: lets the code continue. Returns what it had asked for up to
  // there, with the step as completed; `turn` then has what it asks for now.
  TurnRequest go_on(OpenTurn& turn, const std::optional<std::string>& result, Time now);

  // Keeps the run if it waits, before the commit: the next turn may be claimed before this one is answered.
  void keep(OpenTurn& turn);

  // Both at once.
  TurnRequest run(const Execution& claimed, const std::vector<Event>& events);

  // The same for the workflow that waits for this task alone, if it is kept here: its next turn, which follows the
  // task's end. Nothing if there is none. If anything else has happened to the workflow, the store does not accept the
  // turn.
  std::optional<TurnRequest> follow(const RunningTask& task, const Report& report);

  // The commit of a turn that followed a step was accepted.
  void accepted(const TurnRequest& following) { kept_.now_certain(following.token.next()); }

  // The turn was not accepted, or its run is out of date: it is useless. Quick, like refused().
  void discard(OpenTurn& turn) { kept_.drop({std::move(turn.run), turn.request.token}); }

  // The commit was not accepted: the run as it is here never happened.
  void refused(const ExecutionId& run) { kept_.drop(run); }

  const std::map<std::string, DeclaredWorkflow>& declared() const { return declared_; }

  // What it did so far.
  std::int64_t continued() const { return continued_; }  // turns that continued a kept run
  std::int64_t followed() const { return followed_; }    // those among them that were not claimed
  std::int64_t replayed() const { return replayed_; }    // turns that began at the start
  std::int64_t events() const { return events_; }        // told to the code, over all turns

 private:
  std::unique_ptr<WorkflowRun> continue_run(const Execution& claimed, const std::vector<Event>& events);
  std::unique_ptr<WorkflowRun> replay(const DeclaredWorkflow& workflow, const Execution& claimed,
                                      const std::vector<Event>& events);

  AppState& app_;
  const StackPool& stacks_of(const std::string& type) const;

  const std::map<std::string, DeclaredWorkflow> declared_;
  const StackPool stacks_;
  const std::map<std::string, StackPool> own_stacks_;  // of workflows that say how much they need
  std::atomic<std::int64_t> continued_ = 0, followed_ = 0, replayed_ = 0, events_ = 0;
  RunCache kept_;  // before what it stands on
};

}  // namespace hapax::detail
