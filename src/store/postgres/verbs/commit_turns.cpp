// Turns of workflows. One statement commits most turns that no other transaction takes part in (steps that were begun
// and completed within them, and an end, or none yet). The workflow rules decide the others, under a lock.
#include "store/postgres/fast/turns.h"
#include "store/postgres/run_rows.h"
#include "store/postgres/verbs/start.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/workflow.h"

namespace hapax::postgres {

namespace {

std::vector<TurnOutcome> commit_locked(Runner& runner, std::span<const Turn> turns, WaitingClaims& waiters) {
  std::vector<ExecutionId> runs, ending, steps;
  for (const Turn& turn : turns) {
    runs.push_back(turn.token.execution);
    if (turn.step) ending.push_back(turn.step->token.execution);
    for (const Turn::Start& start : turn.starts) {
      steps.push_back(step_id(turn.token.execution, start.submission.execution.type, start.step));
    }
  }
  const std::lock_guard alone(runner.slow_turn_mutex());
  return runner.transact([&](Workspace& workspace) {
    workspace.lock_runs(runs, ending, steps);
    PostgresRows rows(workspace);
    std::vector<TurnOutcome> outcomes;
    for (const Turn& turn : turns) outcomes.push_back(rules::commit_turn(rows, turn));
    hand_out(workspace, waiters, turns, outcomes);
    return outcomes;
  });
}

}  // namespace

std::vector<TurnOutcome> commit_turns(Runner& runner, std::span<const Turn> turns, WaitingClaims& waiters) {
  std::vector<TurnOutcome> outcomes(turns.size());
  if (!runner.fast().commit_turns) return commit_locked(runner, turns, waiters);
  const std::vector<std::size_t> rest = fast::commit_turns(runner, turns, outcomes);
  if (rest.empty()) return outcomes;
  if (rest.size() == turns.size()) return commit_locked(runner, turns, waiters);
  std::vector<Turn> others;
  for (const std::size_t i : rest) others.push_back(turns[i]);
  try {
    std::vector<TurnOutcome> decided = commit_locked(runner, others, waiters);
    for (std::size_t i = 0; i < rest.size(); ++i) outcomes[rest[i]] = std::move(decided[i]);
  } catch (const Failure& failure) {
    // Some are committed: only sending all of them again tells how it ended.
    if (failure.code() != Failure::Code::unavailable) throw;
    throw Failure(Failure::Code::outcome_unknown, failure.what());
  }
  return outcomes;
}

}  // namespace hapax::postgres
