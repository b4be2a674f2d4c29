// What has become due; what is past its retention.
#include <algorithm>
#include <limits>

#include "store/postgres/run_rows.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/close.h"

namespace hapax::postgres {

namespace {

// What is due between $1 and $2, the earliest $3 of it. Running or not: each has its index.
const std::string kDueBetween = R"sql(
((SELECT due_at, id FROM open WHERE status = 1 AND due_at > $1::int8 AND due_at <= $2::int8 ORDER BY due_at, id LIMIT $3::int8)
UNION ALL
(SELECT due_at, id FROM open WHERE status <> 1 AND due_at IS NOT NULL AND due_at > $1::int8 AND due_at <= $2::int8
 ORDER BY due_at, id LIMIT $3::int8)) d)sql";
const Statement kDueIds{"due_ids", "SELECT d.id FROM " + kDueBetween + " ORDER BY d.due_at, d.id LIMIT $3::int8"};
// And the server's clock, in microseconds: with the one before, what the looking took there, without the way there.
const std::string kClockUs = "(extract(epoch FROM clock_timestamp()) * 1000000)::int8";
const Statement kNextDue{"next_due", "SELECT min(d.due_at), " + kClockUs + " FROM " + kDueBetween};
const Statement kClock{"clock", "SELECT " + kClockUs};

constexpr Time kBeginning = from_ms(std::numeric_limits<std::int64_t>::min());
constexpr Time kEnd = from_ms(std::numeric_limits<std::int64_t>::max());

// Where full scans are slow: how far back, and how far ahead. The next sweep runs by then.
constexpr Duration kLooseEnd{1000}, kSoon{1000};
// Maximum back-off after a slow scan: timers are late by at most this.
constexpr Duration kLongestPause{2000};

const Statement kQueues{"queue_numbers", "SELECT queue_no FROM queues"};

// In the order of the namespaces and queues; within each, the longest closed first.
const Statement kOverRetention{"over_retention",
                               "SELECT c.id FROM unnest($1::int4[], $2::int8[]) AS g (queue_no, closed_by),"
                               " LATERAL (SELECT s.id FROM closed s WHERE s.queue_no = g.queue_no"
                               " AND s.finished_at <= g.closed_by AND NOT s.has_parent"
                               " ORDER BY s.finished_at, s.id LIMIT $3::int8) c LIMIT $3::int8"};

const Statement kDeadTombstones{
    "dead_tombstones",
    "SELECT hash FROM tombstones WHERE expires_at <= $1::int8 ORDER BY expires_at, hash LIMIT $2::int8"};
const Statement kEraseTombstones{
    "erase_tombstones",
    "WITH gone AS (DELETE FROM tombstones t WHERE t.hash = ANY($1::bytea[]) AND t.expires_at <= $2::int8 RETURNING "
    "t.hash)"
    " DELETE FROM identities i WHERE i.hash = ANY(ARRAY(SELECT " +
        ledger_hash("g.hash") + " FROM gone g)) RETURNING i.hash"};

const Statement kFirstShelf{
    "first_shelf",
    "SELECT x.key_shelf FROM executions x WHERE x.key_hash IS NOT NULL AND x.key_shelf >= $1::int4"
    " ORDER BY x.key_shelf LIMIT 1"};

const Statement kPurgeRequests{
    "purge_requests",
    "WITH gone AS (DELETE FROM requests WHERE ctid = ANY(ARRAY(SELECT x.ctid FROM requests x WHERE x.expires_at <= "
    "$1::int8"
    " ORDER BY x.expires_at LIMIT $2::int8 FOR UPDATE SKIP LOCKED)) RETURNING 1) SELECT count(*) FROM gone"};

const Statement kPurgeReports{"purge_reports",
                              "WITH gone AS (" + forget_reports().sql + " RETURNING 1) SELECT count(*) FROM gone"};

std::vector<ExecutionId> ids_in(const Rows& rows) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < rows.size(); ++i) ids.push_back(Cells(rows, i).raw<ExecutionId>());
  return ids;
}

std::vector<ExecutionId> over_retention(Workspace& workspace, std::int32_t limit) {
  Connection& connection = workspace.connection();
  const Time now = workspace.now();
  const Rows rows = connection.run(kQueues);
  std::vector<std::int32_t> known;
  for (int i = 0; i < rows.size(); ++i) known.push_back(static_cast<std::int32_t>(Cells(rows, i).integer()));
  workspace.queues().look_up(connection, known);
  Array numbers(Type::int4), ends(Type::int8);
  for (const auto& [name, number] : workspace.queues().all()) {
    numbers.integer(number);
    ends.time(now - workspace.policies().retention(name.name_space, name.queue, name.kind));
  }
  Parameters parameters;
  parameters.array(std::move(numbers)).array(std::move(ends)).int8(limit);
  return ids_in(connection.run(kOverRetention, parameters));
}

// The identity is locked before its tombstone is read, as everywhere.
std::int64_t purge_tombstones(Workspace& workspace, std::int32_t limit) {
  Connection& connection = workspace.connection();
  const Rows rows = connection.run(kDeadTombstones, Parameters().time(workspace.now()).int8(limit));
  if (rows.empty()) return 0;
  Array hashes(Type::bytea);
  for (int i = 0; i < rows.size(); ++i) hashes.raw(Cells(rows, i).raw<IdentityHash>());
  Parameters parameters;
  parameters.array(std::move(hashes)).time(workspace.now());
  return connection.run(kEraseTombstones, parameters).size();
}

std::int64_t erase_requests(Workspace& workspace, std::int32_t limit) {
  const Rows rows = workspace.connection().run(kPurgeRequests, Parameters().time(workspace.now()).int8(limit));
  return Cells(rows, 0).integer();
}

// Before anything of it is deleted, which leaves an index that is slow to begin at the beginning of.
void find_first_shelf(Runner& runner) {
  const std::int32_t known = runner.queues().first_shelf();
  runner.queues().set_first_shelf(runner.read_aside([&](Workspace& workspace) {
    workspace.connection().send(kFirstShelf, Parameters().int4(known));
    workspace.now();
    const Rows rows = workspace.connection().receive();
    return rows.empty() ? known : static_cast<std::int32_t>(Cells(rows, 0).integer());
  }));
}

}  // namespace

Sweep::Found Sweep::look(Workspace& workspace, std::int32_t limit) {
  Connection& connection = workspace.connection();
  Found found;
  found.now = workspace.now();
  const bool from_beginning = !swept_to_ || found.now < *swept_to_ || pace_.full_scan_allowed();
  const Time begin = from_beginning ? kBeginning : *swept_to_ - kLooseEnd;
  const Time end = from_beginning ? kEnd : found.now + kSoon;
  connection.send(kClock);
  connection.send(kDueIds, Parameters().time(begin).time(found.now).int8(std::max(limit, 0)));
  connection.send(kNextDue, Parameters().time(found.now).time(end).int8(1));
  const Rows clock = connection.receive();
  found.due = ids_in(connection.receive());
  const Rows rows = connection.receive();
  Cells cells(rows, 0);
  found.next_due = cells.time_if();
  const std::chrono::microseconds took(cells.integer() - Cells(clock, 0).integer());
  if (!runner_.clock() && from_beginning) pace_.took(took, 0);
  if (!runner_.clock() && !from_beginning) window_pace_.took(took, 0, kLongestPause);
  if (from_beginning) swept_to_.reset();
  if (!from_beginning && !found.next_due) found.next_due = found.now + kSoon;
  return found;
}

SweepOutcome Sweep::operator()(std::int32_t limit) {
  const std::lock_guard lock(mutex_);
  if (!window_pace_.full_scan_allowed()) {
    SweepOutcome later;
    later.effects.next_due = runner_.now() + std::chrono::ceil<Duration>(window_pace_.wait());
    return later;
  }
  Found found = runner_.read([&](Workspace& workspace) { return look(workspace, limit); });
  const std::vector<ExecutionId> ids = std::move(found.due);
  SweepOutcome outcome;
  if (!ids.empty()) {
    outcome = runner_.transact([&](Workspace& workspace) {
      SweepOutcome swept;
      workspace.lock_with_runs(ids);
      PostgresRows rows(workspace);
      for (const ExecutionId& id : ids) swept.effects.add(rules::end_due(rows, id));
      workspace.write();
      const bool from_beginning = pace_.full_scan_allowed();
      // More may be due: then the next due time is unknown.
      const Time begin = from_beginning ? kBeginning : found.now - kLooseEnd;
      const Time end = from_beginning ? kEnd : found.now + kSoon;
      const Rows next = workspace.connection().run(kNextDue, Parameters().time(begin).time(end).int8(1));
      found.next_due = Cells(next, 0).time_if();
      return swept;
    });
  }
  outcome.more = std::ssize(ids) >= limit;
  if (!outcome.more) swept_to_ = found.now;
  outcome.effects.next_due.reset();
  if (found.next_due && *found.next_due > found.now) outcome.effects.next_due = found.next_due;
  return outcome;
}

PurgeOutcome purge(Runner& runner, std::int32_t limit) {
  find_first_shelf(runner);
  return runner.transact([&](Workspace& workspace) {
    PurgeOutcome outcome;
    const std::vector<ExecutionId> ids = over_retention(workspace, limit);
    workspace.lock(ids, Workspace::Extent::whole);
    PostgresRows rows(workspace);
    for (const ExecutionId& id : ids) outcome.executions += rules::purge(rows, id) ? 1 : 0;
    workspace.write();
    outcome.identities = purge_tombstones(workspace, limit);
    outcome.requests = erase_requests(workspace, limit);
    const Rows forgotten = workspace.connection().run(kPurgeReports, Parameters().time(workspace.now()).int8(limit));
    outcome.more_reports = Cells(forgotten, 0).integer() >= limit || forget_workers(workspace, limit) >= limit;
    outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
    return outcome;
  });
}

std::int64_t purge_requests(Runner& runner, std::int32_t limit) {
  return runner.transact([&](Workspace& workspace) { return erase_requests(workspace, limit); });
}

}  // namespace hapax::postgres
