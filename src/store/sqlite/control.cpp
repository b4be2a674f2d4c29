#include "store/rules/workflow.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

PastRequest read_past(const Run& stored) {
  PastRequest past;
  past.action = static_cast<ControlRequest::Action>(stored.int32(0));
  past.target = stored.bytes<ExecutionId>(1);
  past.outcome.kind = static_cast<ControlOutcome::Kind>(stored.int32(2));
  past.outcome.changed = stored.int32(3) != 0;
  past.outcome.status = static_cast<Status>(stored.int32(4));
  past.outcome.other = stored.bytes_if<ExecutionId>(5);
  past.workflow_id = stored.text_if(6);
  past.parameters = stored.bytes_if<InputHash>(7).value_or(InputHash());
  past.outcome.execution = stored.bytes_if<ExecutionId>(8);
  past.outcome.steps = stored.int32(9);
  return past;
}

}  // namespace

Control::Control(Connection& db)
    : find_(db,
            "SELECT action, target, outcome, changed, status, other, workflow_id, parameters, execution, steps"
            " FROM requests WHERE name_space = ? AND request_key = ? AND expires_at > ?"),
      put_(db,
           "INSERT OR REPLACE INTO requests (name_space, request_key, action, target, outcome, changed, status, other,"
           " created_at, expires_at, workflow_id, parameters, execution, steps)"
           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

ControlOutcome Control::operator()(Batch& batch, const ControlRequest& request) {
  {
    Run stored(find_);
    if (stored.bind(request.name_space).bind(request.request_key).bind(batch.now).next()) {
      return answer_again(read_past(stored), request);
    }
  }
  const ControlOutcome outcome = run_operation(batch, request);
  Run run(put_);
  run.bind(request.name_space).bind(request.request_key).bind(static_cast<std::int32_t>(request.action));
  run.bind(request.target).bind(static_cast<std::int32_t>(outcome.kind));
  run.bind(static_cast<std::int32_t>(outcome.changed)).bind(outcome.status).bind(outcome.other);
  run.bind(batch.now).bind(batch.now + request.request_ttl).bind(request.workflow_id).bind(request.parameters);
  run.bind(outcome.execution).bind(outcome.steps).done();
  return outcome;
}

}  // namespace hapax::sqlite
