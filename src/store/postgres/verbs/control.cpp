#include "store/postgres/run_rows.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/workflow.h"

namespace hapax::postgres {

std::vector<ControlOutcome> control(Runner& runner, std::span<const ControlRequest> requests) {
  std::vector<ExecutionId> ids;
  for (const ControlRequest& request : requests) {
    if (!request.workflow_id) ids.push_back(request.target);
  }
  return runner.transact([&](Workspace& workspace) {
    workspace.now();
    Requests keys(workspace.connection());
    keys.lock(requests);
    workspace.lock(ids, Workspace::Extent::whole);
    PostgresRows rows(workspace, &keys);
    std::vector<ControlOutcome> outcomes;
    for (const ControlRequest& request : requests) outcomes.push_back(rules::control(rows, request));
    keys.write();
    return outcomes;
  });
}

}  // namespace hapax::postgres
