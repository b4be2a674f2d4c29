#include "core/transition.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

using Kind = ControlOutcome::Kind;

ControlOutcome cancel(Batch& batch, Row& row) {
  Execution& target = row.execution;
  const std::size_t known = target.failed_attempts.size();
  const Duration grace = batch.policies.of(target.name_space, target.queue).cancel_grace;
  ControlOutcome outcome;
  outcome.queue = target.queue;
  outcome.changed = request_cancel(target, grace, batch.now);
  outcome.status = target.status;
  outcome.closed = outcome.changed && is_closed(target.status);
  if (outcome.changed) settle(batch, row, known);
  return outcome;
}

ControlOutcome retry(Batch& batch, Row& row) {
  Execution& target = row.execution;
  ControlOutcome outcome;
  outcome.status = target.status;
  if (!retry_closed(target, batch.now)) {
    outcome.kind = Kind::not_retryable;
    return outcome;
  }
  if (target.identity) {
    const IdentityHash& hash = target.identity->hash;
    const auto held = batch.tables.find_identity(hash);
    if (held && held->entry.owner != target.id) {
      const Execution* owner = held->owner ? &held->owner->execution : nullptr;
      if (is_live(held->entry, owner, retention_of_owner(batch.policies, *held), batch.now)) {
        outcome.kind = Kind::identity_taken;
        outcome.other = held->entry.owner;
        return outcome;
      }
    }
    batch.tables.take_identity(hash, row.seq);
  }
  batch.tables.save(row, target.failed_attempts.size());
  outcome.changed = true;
  outcome.status = target.status;
  outcome.queue = target.queue;
  return outcome;
}

ControlOutcome run_operation(Batch& batch, const ControlRequest& request) {
  auto row = batch.tables.load_state(request.target);
  if (!row || row->execution.name_space != request.name_space) {
    ControlOutcome outcome;
    outcome.kind = Kind::not_found;
    return outcome;
  }
  return request.action == ControlRequest::Action::cancel ? cancel(batch, *row) : retry(batch, *row);
}

ControlOutcome answer_again(const Run& stored, const ControlRequest& request) {
  ControlOutcome outcome;
  if (stored.int32(0) != static_cast<std::int32_t>(request.action) || stored.bytes<ExecutionId>(1) != request.target) {
    outcome.kind = Kind::key_conflict;
    return outcome;
  }
  const auto kind = static_cast<Kind>(stored.int32(2));
  outcome.status = static_cast<Status>(stored.int32(4));
  if (kind == Kind::done) {
    outcome.replayed = true;
    outcome.changed = stored.int32(3) != 0;
  } else {
    outcome.kind = Kind::failed_before;
    outcome.before = kind;
    outcome.other = stored.bytes_if<ExecutionId>(5);
  }
  return outcome;
}

}  // namespace

Control::Control(Connection& db)
    : find_(db,
            "SELECT action, target, outcome, changed, status, other FROM requests"
            " WHERE name_space = ? AND request_key = ? AND expires_at > ?"),
      put_(db,
           "INSERT OR REPLACE INTO requests (name_space, request_key, action, target, outcome, changed, status, other,"
           " created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

ControlOutcome Control::operator()(Batch& batch, const ControlRequest& request) {
  {
    Run stored(find_);
    if (stored.bind(request.name_space).bind(request.request_key).bind(batch.now).next()) {
      return answer_again(stored, request);
    }
  }
  const ControlOutcome outcome = run_operation(batch, request);
  Run run(put_);
  run.bind(request.name_space).bind(request.request_key).bind(static_cast<std::int32_t>(request.action));
  run.bind(request.target).bind(static_cast<std::int32_t>(outcome.kind));
  run.bind(static_cast<std::int32_t>(outcome.changed)).bind(outcome.status).bind(outcome.other);
  run.bind(batch.now).bind(batch.now + request.request_ttl).done();
  return outcome;
}

}  // namespace hapax::sqlite
