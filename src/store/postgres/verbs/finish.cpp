// Heartbeats and reports. Most reports say that a task is completed, under the current lease: one statement closes
// those, at once where it is known where their rows are. The others are decided by the rules of core, under a lock.
#include <numeric>

#include "store/postgres/fast/complete.h"
#include "store/postgres/run_rows.h"
#include "store/postgres/verbs/start.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/finish.h"

namespace hapax::postgres {

std::vector<FinishOutcome> finish(Runner& runner, std::span<const Report> reports, WaitingClaims& waiters) {
  std::vector<FinishOutcome> outcomes(reports.size());
  std::vector<std::size_t> rest(reports.size());
  std::iota(rest.begin(), rest.end(), std::size_t{0});
  try {
    const fast::Switches& fast = runner.fast();
    if (fast.complete_by_spot && !rest.empty())
      rest = fast::complete(runner, fast::By::location, reports, rest, outcomes);
    if (fast.complete && !rest.empty()) rest = fast::complete(runner, fast::By::id, reports, rest, outcomes);
    if (rest.empty()) return outcomes;
    std::vector<ExecutionId> ids;
    for (const std::size_t i : rest) ids.push_back(reports[i].token.execution);
    runner.transact([&](Workspace& workspace) {
      workspace.lock_with_runs(ids);
      workspace.read_reports(ids);
      PostgresRows rows(workspace);
      for (const std::size_t i : rest) outcomes[i] = rules::finish(rows, reports[i]);
      hand_out(workspace, waiters, reports, outcomes);
      return true;
    });
  } catch (const Failure& failure) {
    // Some are closed: only sending all of them again tells how it ended.
    if (failure.code() != Failure::Code::unavailable || rest.size() == reports.size()) throw;
    throw Failure(Failure::Code::outcome_unknown, failure.what());
  }
  return outcomes;
}

std::vector<ExtendOutcome> extend(Runner& runner, std::span<const Extension> extensions) {
  std::vector<ExecutionId> ids;
  bool gives_back = false;
  for (const Extension& extension : extensions) {
    ids.push_back(extension.token.execution);
    gives_back = gives_back || extension.lease <= Duration(0);
  }
  return runner.transact([&](Workspace& workspace) {
    gives_back ? workspace.lock(ids, Workspace::Extent::state) : workspace.lock_open(ids);
    PostgresRows rows(workspace);
    std::vector<ExtendOutcome> outcomes;
    for (const Extension& extension : extensions) outcomes.push_back(rules::extend(rows, extension));
    for (const ReturnedPermits& permits : returned_permits(extensions, outcomes, workspace.policies())) {
      take_back(workspace, permits);
    }
    return outcomes;
  });
}

}  // namespace hapax::postgres
