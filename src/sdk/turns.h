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

// A turn that is being run: what it has asked for since its last commit, and the run, in case it goes on.
struct OpenTurn {
  std::unique_ptr<WorkflowRun> run;  // null: there is none
  TurnRequest request;
  // No worker was lost in this turn before. Otherwise its steps are begun the ordinary way, which counts their
  // attempts.
  bool is_first_try = false;

  // The command for the task that the code waits for alone, and that it has asked for in this turn, if there is one;
  // then it is the last.
  TurnRequest::Command* lone_step();
};

class Turns {
 public:
  // The app must outlive it.
  Turns(AppState& app, std::size_t kept_runs, std::size_t stack_bytes);

  // Runs the code: goes on in the run that is kept, or fetches the history and replays. Throws Failure if that cannot
  // be had.
  OpenTurn open(const Execution& claimed, const std::vector<Event>& events);

  // The lone step was begun and completed within the turn: lets the code go on. Gives back what it had asked for up to
  // there, with the step as completed; in `turn` is what it asks for now.
  TurnRequest go_on(OpenTurn& turn, const std::optional<std::string>& result, Time now);

  // Keeps the run if it waits, before the commit: the next turn may be claimed before the answer to this one is here.
  void keep(OpenTurn& turn);

  // Both at once.
  TurnRequest run(const Execution& claimed, const std::vector<Event>& events);

  // The same for the workflow that waits for this task alone, if it is kept here: its next turn, which follows the
  // task's end. Nothing if there is none. Whatever has come of the workflow meanwhile, the store knows: then the turn
  // is not accepted.
  std::optional<TurnRequest> follow(const RunningTask& task, const Report& report);

  // The commit of a turn that followed a step was accepted.
  void accepted(const TurnRequest& following) { kept_.now_certain(following.token.next()); }

  // The turn is not accepted, or others know more of its run: it is of no use any more. Quick, as refused() is.
  void discard(OpenTurn& turn) { kept_.drop({std::move(turn.run), turn.request.token}); }

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
