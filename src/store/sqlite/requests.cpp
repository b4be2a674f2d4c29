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

Requests::Requests(Connection& db)
    : find_(db,
            "SELECT action, target, outcome, changed, status, other, workflow_id, parameters, execution, steps"
            " FROM hapax_requests WHERE name_space = ? AND request_key = ? AND expires_at > ?"),
      put_(db,
           "INSERT OR REPLACE INTO hapax_requests (name_space, request_key, action, target, outcome, changed, status, "
           "other,"
           " created_at, expires_at, workflow_id, parameters, execution, steps)"
           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

std::optional<PastRequest> Requests::find(const std::string& name_space, const std::string& key, Time now) {
  Run stored(find_);
  if (!stored.bind(name_space).bind(key).bind(now).next()) return std::nullopt;
  return read_past(stored);
}

void Requests::put(const std::string& name_space, const std::string& key, const PastRequest& past, Time now,
                   Time expires_at) {
  const ControlOutcome& outcome = past.outcome;
  Run run(put_);
  run.bind(name_space).bind(key).bind(static_cast<std::int32_t>(past.action));
  run.bind(past.target).bind(static_cast<std::int32_t>(outcome.kind));
  run.bind(static_cast<std::int32_t>(outcome.changed)).bind(outcome.status).bind(outcome.other);
  run.bind(now).bind(expires_at).bind(past.workflow_id).bind(past.parameters);
  run.bind(outcome.execution).bind(outcome.steps).done();
}

}  // namespace hapax::sqlite
