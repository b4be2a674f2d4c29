#include "core/transition.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

// Parked executions are freed by whoever frees their slot. Looking for forgotten ones now and then costs little and
// makes it harmless that two processes knew different limits for a while.
constexpr Duration kRepairInterval{30'000};

}  // namespace

Sweep::Sweep(Connection& db)
    : due_(db,
           "SELECT id FROM executions INDEXED BY due WHERE due_at IS NOT NULL AND due_at <= ?"
           " ORDER BY due_at, id LIMIT ?"),
      next_due_(db, "SELECT due_at FROM executions INDEXED BY due WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1") {}

SweepOutcome Sweep::operator()(Batch& batch, std::int32_t limit) {
  std::vector<ExecutionId> ids;
  {
    Run run(due_);
    run.bind(batch.now).bind(std::max(limit, 0));
    while (run.next()) ids.push_back(run.bytes<ExecutionId>(0));
  }

  SweepOutcome outcome;
  for (const ExecutionId& id : ids) {
    Row row = batch.tables.load_state(id).value();
    Execution& execution = row.execution;
    Effects effects;
    if (expire(execution, batch.now)) {
      effects.add_changed(execution);
      settle(batch, row, 0, effects);
    } else if (execution.status == Status::suspended) {
      wake_run(batch, id, effects);
    }
    outcome.effects.add(effects);
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
    : queues_(db, "SELECT queue_no, name_space, queue, kind FROM queues ORDER BY name_space, queue, kind"),
      closed_(db,
              "SELECT e.seq FROM executions e INDEXED BY closed WHERE e.finished_at IS NOT NULL"
              " AND e.queue_no = ? AND e.kind = ? AND e.finished_at <= ?"
              " AND (e.parent IS NULL OR NOT EXISTS (SELECT 1 FROM executions p WHERE p.id = e.parent))"
              " ORDER BY e.finished_at, e.id LIMIT ?"),
      tombstones_(db,
                  "SELECT hash FROM tombstones INDEXED BY tombstone_ends WHERE expires_at <= ?"
                  " ORDER BY expires_at, hash LIMIT ?"),
      requests_(db,
                "DELETE FROM requests WHERE (name_space, request_key) IN (SELECT name_space, request_key"
                " FROM requests INDEXED BY request_ends WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)") {}

std::vector<std::int64_t> Purge::over_retention(Batch& batch, std::int32_t limit) {
  std::vector<std::int64_t> seqs;
  Run queues(queues_);
  while (std::ssize(seqs) < limit && queues.next()) {
    const auto kind = static_cast<Kind>(queues.int32(3));
    const Duration retention = batch.policies.retention(queues.text(1), queues.text(2), kind);
    Run run(closed_);
    run.bind(queues.int64(0)).bind(kind).bind(batch.now - retention).bind(limit - std::ssize(seqs));
    while (run.next()) seqs.push_back(run.int64(0));
  }
  return seqs;
}

std::int64_t Purge::requests(Batch& batch, std::int32_t limit) {
  return Run(requests_).bind(batch.now).bind(limit).done();
}

PurgeOutcome Purge::operator()(Batch& batch, std::int32_t limit) {
  PurgeOutcome outcome;
  for (const std::int64_t seq : over_retention(batch, limit)) {
    const Row row = batch.tables.load_all(seq).value();
    batch.tables.erase(row, batch.now);
    batch.tables.remember_report(row, batch.now);
    ++outcome.executions;
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
  outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
  return outcome;
}

}  // namespace hapax::sqlite
