#include <algorithm>

#include "core/transition.h"
#include "store/rules/close.h"
#include "store/sqlite/sqlite_rows.h"

namespace hapax::sqlite {

namespace {

// The transaction that frees a slot unparks the next execution. Scanning for forgotten ones now and then costs little,
// and makes it harmless that two processes knew different limits for a while.
constexpr Duration kRepairInterval{30'000};

}  // namespace

Sweep::Sweep(Connection& db)
    : due_(db,
           "SELECT id FROM hapax_executions INDEXED BY hapax_due WHERE due_at IS NOT NULL AND due_at <= ?"
           " ORDER BY due_at, id LIMIT ?"),
      next_due_(
          db,
          "SELECT due_at FROM hapax_executions INDEXED BY hapax_due WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1"),
      running_(db, "SELECT id FROM hapax_executions INDEXED BY hapax_running WHERE status = 1"),
      leased_ahead_(db,
                    "SELECT id, run_in_ms, lease_ms FROM hapax_executions INDEXED BY hapax_running WHERE status = 1"
                    " AND (lease_expires_at > ?1 + lease_ms OR attempt_ends_by > ?1 + timeout_ms"
                    " OR cancel_requested_at > ?1)"),
      delayed_ahead_(
          db,
          "SELECT id, run_in_ms, lease_ms FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0"
          " AND run_at > ?1 AND run_at > ?1 + run_in_ms") {}

void Sweep::recount_found(Batch& batch, Statement& statement, Effects& effects) {
  struct Counted {
    ExecutionId id;
    std::optional<Duration> run_in, lease;
  };
  std::vector<Counted> ahead;
  {
    Run run(statement);
    run.bind(batch.now);
    const auto length = [&](int column) {
      return run.is_null(column) ? std::nullopt : std::optional(Duration(run.int64(column)));
    };
    while (run.next()) ahead.push_back({run.bytes<ExecutionId>(0), length(1), length(2)});
  }
  for (const Counted& counted : ahead) {
    Row row = batch.tables.load_state(counted.id).value();
    if (!recount(row.execution, counted.run_in, counted.lease, batch.now)) continue;
    batch.tables.save(row, 0);
    if (row.execution.status == Status::pending) {
      effects.add_changed(row.execution);
    }
  }
}

// What was counted by a clock that was ahead. Few run, so those are looked over now and then; what is delayed only at
// first, and when the clock is seen to have been set back.
void Sweep::recount_ahead(Batch& batch, Effects& effects) {
  const bool set_back = batch.tables.clock_set_back();
  const bool due = !repaired_at_ || batch.now - *repaired_at_ >= kRepairInterval;
  if (set_back) {
    repaired_at_.reset();
    recount_found(batch, delayed_ahead_, effects);
  }
  if (set_back || due) recount_found(batch, leased_ahead_, effects);
  batch.tables.handled_clock_set_back();
}

void Sweep::end_leases_of(Batch& batch, const std::vector<std::string>& workers) {
  std::vector<ExecutionId> ids;
  {
    Run run(running_);
    while (run.next()) ids.push_back(run.bytes<ExecutionId>(0));
  }
  for (const ExecutionId& id : ids) {
    Row row = batch.tables.load_state(id).value();
    if (std::find(workers.begin(), workers.end(), row.execution.worker) == workers.end()) continue;
    row.execution.lease_expires_at = std::min(row.execution.lease_expires_at.value_or(batch.now), batch.now);
    batch.tables.save(row, 0);
  }
}

SweepOutcome Sweep::operator()(Batch& batch, std::int32_t limit, const std::vector<std::string>& dead_workers) {
  SweepOutcome outcome;
  if (!dead_workers.empty()) end_leases_of(batch, dead_workers);
  recount_ahead(batch, outcome.effects);
  std::vector<ExecutionId> ids;
  {
    Run run(due_);
    run.bind(batch.now).bind(std::max(limit, 0));
    while (run.next()) ids.push_back(run.bytes<ExecutionId>(0));
  }

  for (const ExecutionId& id : ids) {
    SqliteRows rows(batch);
    outcome.effects.add(rules::end_due(rows, id));
  }
  outcome.more = std::ssize(ids) >= limit;
  {
    outcome.effects.next_due.reset();
    Run run(next_due_);
    if (run.next() && run.time(0) > batch.now) outcome.effects.next_due = run.time(0);
  }

  if (!repaired_at_ || batch.now - *repaired_at_ >= kRepairInterval) {
    batch.tables.unpark_where_free(batch.policies);
    repaired_at_ = batch.now;
  }
  return outcome;
}

Purge::Purge(Connection& db)
    : queues_(db, "SELECT queue_no, name_space, queue, kind FROM hapax_queues ORDER BY name_space, queue, kind"),
      closed_(db,
              "SELECT e.id FROM hapax_executions e INDEXED BY hapax_closed WHERE e.finished_at IS NOT NULL"
              " AND e.queue_no = ? AND e.kind = ? AND e.finished_at <= ?"
              " AND (e.parent IS NULL OR NOT EXISTS (SELECT 1 FROM hapax_executions p WHERE p.id = e.parent))"
              " ORDER BY e.finished_at, e.id LIMIT ?"),
      tombstones_(db,
                  "SELECT hash FROM hapax_tombstones INDEXED BY hapax_tombstone_ends WHERE expires_at <= ?"
                  " ORDER BY expires_at, hash LIMIT ?"),
      requests_(
          db,
          "DELETE FROM hapax_requests WHERE (name_space, request_key) IN (SELECT name_space, request_key"
          " FROM hapax_requests INDEXED BY hapax_request_ends WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)") {}

std::vector<ExecutionId> Purge::over_retention(Batch& batch, std::int32_t limit) {
  std::vector<ExecutionId> ids;
  Run queues(queues_);
  while (std::ssize(ids) < limit && queues.next()) {
    const auto kind = static_cast<Kind>(queues.int32(3));
    const Duration retention = batch.policies.retention(queues.text(1), queues.text(2), kind);
    Run run(closed_);
    run.bind(queues.int64(0)).bind(kind).bind(batch.now - retention).bind(limit - std::ssize(ids));
    while (run.next()) ids.push_back(run.bytes<ExecutionId>(0));
  }
  return ids;
}

std::int64_t Purge::requests(Batch& batch, std::int32_t limit) {
  return Run(requests_).bind(batch.now).bind(limit).done();
}

PurgeOutcome Purge::operator()(Batch& batch, std::int32_t limit) {
  PurgeOutcome outcome;
  for (const ExecutionId& id : over_retention(batch, limit)) {
    SqliteRows rows(batch);
    outcome.executions += rules::purge(rows, id) ? 1 : 0;
  }
  std::vector<IdentityHash> dead;
  {
    Run run(tombstones_);
    run.bind(batch.now).bind(limit);
    while (run.next()) dead.push_back(run.bytes<IdentityHash>(0));
  }
  for (const IdentityHash& hash : dead) outcome.identities += batch.tables.erase_identity(hash) ? 1 : 0;
  outcome.requests = requests(batch, limit);
  outcome.more_reports = batch.tables.forget_reports(batch.now, limit) >= limit;
  if (forget_workers(batch.tables, batch.now, limit) >= limit) outcome.more_reports = true;
  outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
  return outcome;
}

}  // namespace hapax::sqlite
