#include "store/postgres/run_rows.h"

#include <algorithm>

#include "store/rules/submit.h"

namespace hapax::postgres {

std::optional<Execution> PostgresRows::load(const ExecutionId& id) {
  const Row* row = workspace_.load(id);
  return row ? std::optional(row->execution) : std::nullopt;
}

std::optional<Execution> PostgresRows::load_state(const ExecutionId& id) {
  const Row* row = workspace_.find(id);
  return row ? std::optional(row->execution) : std::nullopt;
}

std::optional<ExecutionId> PostgresRows::latest_run(const std::string& name_space, const std::string& workflow_id) {
  auto latest = postgres::latest_run(workspace_.connection(), workspace_.queues().first_shelf(), name_space,
                                     workflow_id, workspace_.erased_executions());
  for (const Execution* execution : workspace_.new_executions()) {
    if (execution->kind != Kind::workflow || execution->name_space != name_space) continue;
    if (execution->idempotency_key == workflow_id && (!latest || *latest < execution->id)) latest = execution->id;
  }
  return latest;
}

void PostgresRows::insert(const Execution& execution, std::optional<Duration>) {
  Row row;
  row.execution = execution;
  row.queue_no = workspace_.queue_no({execution.name_space, execution.queue, execution.kind});
  workspace_.add(std::move(row));
}

void PostgresRows::save(const Execution& execution) {
  Row& row = *workspace_.load(execution.id);
  row.execution = execution;
  workspace_.changed(row);
}

SubmitOutcome PostgresRows::submit(const Submission& submission) {
  std::vector<IdentityHash> hashes;
  if (submission.execution.identity) hashes.push_back(submission.execution.identity->hash);
  workspace_.lock_identities(std::move(hashes), {submission.execution.id});
  return rules::submit(*this, submission);
}

// What the batch submits is locked before. Another identity is only asked for to answer a submission that came again.
const LedgerEntry* PostgresRows::entry(const Execution& execution) {
  const IdentityHash& hash = execution.identity->hash;
  if (!workspace_.has_locked(hash)) workspace_.read_identities({hash}, {});
  return workspace_.entry(hash);
}

const LedgerEntry* PostgresRows::lock_entry(const Execution& execution) {
  const IdentityHash& hash = execution.identity->hash;
  if (!workspace_.has_locked(hash)) workspace_.lock_identities({hash}, {});
  return workspace_.entry(hash);
}

const Execution* PostgresRows::owner(const LedgerEntry& entry) {
  const Row* owner = entry.tombstone ? nullptr : workspace_.load(entry.owner);
  return owner ? &owner->execution : nullptr;
}

const Execution* PostgresRows::stored(const ExecutionId& id, const LedgerEntry*) {
  const Row* row = workspace_.find(id);
  return row ? &row->execution : nullptr;
}

void PostgresRows::append(const ExecutionId& run, const std::vector<Event>& events) {
  workspace_.runs().append(run, events);
}

std::vector<Event> PostgresRows::events(const ExecutionId& run) {
  send_read_events(connection(), run, 0, kAllEvents, std::numeric_limits<std::int64_t>::max());
  return receive_events(connection());
}

void PostgresRows::replace_events(const ExecutionId& run, const std::vector<Event>& events) {
  erase_events(connection(), run);
  append(run, events);
}

void PostgresRows::put_wait(const Wait& wait) { postgres::put_wait(connection(), wait); }

std::vector<Wait> PostgresRows::waits_of(const ExecutionId& run) { return postgres::waits_of(connection(), run); }

std::vector<Wait> PostgresRows::waits_on(const ExecutionId& execution) {
  return postgres::waits_on(connection(), execution);
}

void PostgresRows::erase_wait(const ExecutionId& run, std::int32_t step) {
  postgres::erase_wait(connection(), run, step);
}

void PostgresRows::erase_waits(const ExecutionId& run) { workspace_.runs().erase_waits(run); }

void PostgresRows::put_signal(const ExecutionId& run, const Event& signal) {
  postgres::put_signal(connection(), run, signal);
}

std::optional<Event> PostgresRows::take_signal(const ExecutionId& run, const std::string& name) {
  return postgres::take_signal(connection(), run, name);
}

Connection& PostgresRows::connection() {
  workspace_.runs().write(workspace_.connection());
  return workspace_.connection();
}

}  // namespace hapax::postgres
