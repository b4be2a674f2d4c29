// Turns of workflows: from what was claimed to what is to be committed.
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

class Turns {
 public:
  // The app must outlive it.
  Turns(AppState& app, std::size_t kept_runs, std::size_t stack_bytes);

  // Runs one turn: goes on in the run that is kept, or fetches the history and replays. Throws Failure if that cannot
  // be had. The run is kept from now on, before the commit: the next turn may be claimed before the answer to this one
  // is here.
  TurnRequest run(const Execution& claimed, const std::vector<Event>& events);

  // The same for the workflow that waits for this task alone, if it is kept here: its next turn, which follows the task's end.
  // Nothing if there is none. Whatever has come of the workflow meanwhile, the store knows: then the turn is not accepted.
  std::optional<TurnRequest> follow(const RunningTask& task, const Report& report);

  // The commit of a turn that followed a step was accepted.
  void accepted(const TurnRequest& following) { kept_.now_certain(following.token.next()); }

  // The commit was not accepted: the run as it is here never happened.
  void refused(const ExecutionId& run) { kept_.drop(run); }

  const std::map<std::string, DeclaredWorkflow>& declared() const { return declared_; }

  // What it did so far.
  std::int64_t continued() const { return continued_; }  // turns that went on where the last one ended
  std::int64_t followed() const { return followed_; }    // those among them that nobody claimed
  std::int64_t replayed() const { return replayed_; }    // turns that began at the start
  std::int64_t events() const { return events_; }        // told to the code, over all turns

 private:
  std::unique_ptr<WorkflowRun> continue_run(const Execution& claimed, const std::vector<Event>& events);
  std::unique_ptr<WorkflowRun> replay(const DeclaredWorkflow& workflow, const Execution& claimed,
                                      const std::vector<Event>& events);

  AppState& app_;
  const std::map<std::string, DeclaredWorkflow> declared_;
  const StackPool stacks_;
  std::atomic<std::int64_t> continued_ = 0, followed_ = 0, replayed_ = 0, events_ = 0;
  RunCache kept_;  // before what it stands on
};

}  // namespace hapax::detail
