#include "store/postgres/fast/create.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/postgres/verbs/start.h"
#include "store/rules/new_execution.h"
#include "store/rules/submit.h"

namespace hapax::postgres::fast {

namespace {

// What happens to a batch in which some are already stored. Reading first costs a tenth of the batch for identities,
// and a fifth for ids, which only an engine's second try finds.
enum class Stored { all_fail, known_ids_fail, are_left_out };

// For new rows: whether they begin pending, or running for a waiting claim.
enum class Begin { pending, running };

std::string open_sql(Begin begin) {
  const std::string deadline = "coalesce(g.deadline_at, t.now + g.deadline_ms)";
  const std::string common =
      "id, queue_no, kind, priority, type, concurrency_key, has_parent, run_at, deadline_at, attempt_limit";
  const std::string values = fmt::format(
      "g.id, g.queue_no, g.kind, g.priority, g.type, g.concurrency_key, g.parent IS NOT NULL, coalesce(g.run_at, t.now "
      "+ "
      "g.delay_ms),"
      " {}, g.max_attempts",
      deadline);
  if (begin == Begin::pending) {
    return fmt::format("INSERT INTO open ({}, status, due_at, attempt, worker) SELECT {}, g.status, {}, 0, ''", common,
                       values, deadline);
  }
  return fmt::format(
      "INSERT INTO open ({}, status, due_at, attempt, worker, started_at, lease_secret, lease_expires_at, "
      "attempt_ends_by)"
      " SELECT {}, {}, least({}, t.now + g.lease_ms, t.now + g.timeout_ms), 1, g.worker, t.now, g.lease_secret,"
      " t.now + g.lease_ms, t.now + g.timeout_ms",
      common, values, static_cast<int>(Status::running), deadline);
}

std::string create_sql(Stored stored, Begin begin) {
  std::string facts;
  for (const Column& column : fact_columns()) {
    const bool is_creation = std::string_view(column.name) == "created_at";
    facts += fmt::format("{}{}", facts.empty() ? "" : ", ", is_creation ? "t.now" : fmt::format("g.{}", column.name));
  }
  // In the order of their hashes, so that two batches wait for each other and never in a circle.
  const bool looks = stored != Stored::all_fail;
  return fmt::format(
      R"sql(
WITH t AS MATERIALIZED (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now),
given AS MATERIALIZED (
  SELECT * FROM {0}{2}),
held AS (
  INSERT INTO identities (hash, owner, expires_at)
  SELECT {4}, g.id, t.now + g.ttl_ms FROM given g, t WHERE g.identity_hash IS NOT NULL ORDER BY g.identity_hash
  {5}),
added AS (
  {1} FROM given g, t{6}
  RETURNING id),
opened AS (
  {3}
  FROM given g, t{7}
  RETURNING id, ctid AS location)
SELECT t.now, o.id, o.location FROM t LEFT JOIN opened o ON true)sql",
      unnest(begin == Begin::pending ? submission_rows() : started_submission_rows(), 2, "g"),
      insert_facts(fact_columns(), facts, "g"),
      stored == Stored::are_left_out ? " WHERE (SELECT true FROM executions e WHERE e.id = g.id) IS NULL" : "",
      open_sql(begin), ledger_hash("g.identity_hash"), looks ? "ON CONFLICT DO NOTHING RETURNING owner" : "",
      looks ? " WHERE g.identity_hash IS NULL OR g.id IN (SELECT owner FROM held)" : "",
      looks ? " WHERE (g.id IN (SELECT id FROM added)) IS TRUE" : "");
}

const Statement kCreateAll{"create_all", create_sql(Stored::all_fail, Begin::pending)};
const Statement kCreate{"create", create_sql(Stored::known_ids_fail, Begin::pending)};
const Statement kCreateMissing{"create_missing", create_sql(Stored::are_left_out, Begin::pending)};
const Statement kCreateStarted{"create_started", create_sql(Stored::known_ids_fail, Begin::running)};

}  // namespace

std::vector<std::size_t> Create::operator()(const std::vector<std::size_t>& items, bool all_new) {
  std::vector<std::size_t> tried, rest;
  Touched touched;
  for (const std::size_t i : items) {
    const Submission& submission = submissions_[i];
    const bool may_be_new = !submission.dry_run && !submission.run_here && !touched.contains(submission.execution);
    touched.add(submission.execution);
    (may_be_new ? tried : rest).push_back(i);
  }
  if (tried.empty()) return rest;
  const auto policies = runner_.policies();  // one policy snapshot for insert and hand-out
  if (runner_.fast().create_started && one_takes_all(tried, *policies)) {
    if (const auto added = create_started(tried, *policies)) return left_of(tried, *added, std::move(rest));
  }

  Batch batch(submission_rows());
  for (const std::size_t i : tried) write(batch, submissions_[i]);
  Parameters parameters;
  parameters.int8_if(runner_.now_parameter()).batch(std::move(batch));
  const Statement* create = all_new ? &kCreateAll : &kCreate;
  const Added added = runner_.attempt([&](Connection& connection) {
    const Statement& statement = *std::exchange(create, &kCreateMissing);
    if (waiters_.may_be_any()) return create_and_hand_out(connection, statement, parameters, tried);
    connection.begin_implicitly();
    connection.send(statement, parameters);
    return take_created(connection.receive_and_commit(), tried);
  });
  return left_of(tried, added, std::move(rest));
}

std::vector<std::size_t> Create::left_of(const std::vector<std::size_t>& tried, const Added& added,
                                         std::vector<std::size_t> rest) {
  any_created_ = !added.empty();
  for (const std::size_t i : tried) {
    if (!added.contains(submissions_[i].execution.id)) rest.push_back(i);
  }
  std::sort(rest.begin(), rest.end());
  return rest;
}

// Whether one waiting claim can take every new task, so that they are created as claimed.
bool Create::one_takes_all(const std::vector<std::size_t>& tried, const QueuePolicies& policies) {
  if (waiters_.requests.size() != 1 || waiters_.more) return false;
  const ClaimRequest& request = waiters_.requests.front();
  if (request.limit < std::ssize(tried)) return false;
  return std::all_of(tried.begin(), tried.end(), [&](std::size_t i) {
    const Submission& submission = submissions_[i];
    if (submission.run_at || submission.delay != Duration(0) || submission.deadline) return false;
    if (submission.execution.deadline_at || !asks_for(request, submission.execution)) return false;
    return may_be_handed_out(new_execution(submission, Time()), policies, Time());
  });
}

// Nothing, if one of them is stored already.
std::optional<Create::Added> Create::create_started(const std::vector<std::size_t>& tried,
                                                    const QueuePolicies& policies) {
  const ClaimRequest& request = waiters_.requests.front();
  Batch batch(started_submission_rows());
  for (const std::size_t i : tried) {
    write(batch, submissions_[i]);
    batch.next().raw(request.secret);
    batch.next().integer(request.lease.count());
    batch.next().bytes(request.worker);
  }
  Parameters parameters;
  parameters.int8_if(runner_.now_parameter()).batch(std::move(batch));
  bool is_refused = false;
  std::optional<Added> added = runner_.attempt([&](Connection& connection) -> std::optional<Added> {
    if (std::exchange(is_refused, true)) return std::nullopt;
    connection.begin_implicitly();
    connection.send(kCreateStarted, parameters);
    return take_created(connection.receive_and_commit(), tried);
  });
  if (!added) return added;
  std::vector<Execution> fresh;
  for (const std::size_t i : tried) {
    if (added->contains(submissions_[i].execution.id)) fresh.push_back(outcomes_[i].execution);
  }
  std::vector<Execution*> candidates;
  for (Execution& execution : fresh) candidates.push_back(&execution);
  waiters_.outcomes.clear();
  hand_out(waiters_, candidates, policies, now_, [](const Execution&) { return std::vector<Event>(); });
  return added;
}

Create::Added Create::take_created(const Rows& rows, const std::vector<std::size_t>& tried) {
  now_ = Cells(rows, 0).time();
  runner_.note(now_);
  Added added;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    cells.skip();
    if (const auto id = cells.raw_if<ExecutionId>()) added.emplace(*id, cells.raw<RowLocation>());
  }
  for (const std::size_t i : tried) {
    if (added.contains(submissions_[i].execution.id)) outcomes_[i] = rules::created(submissions_[i], now_);
  }
  return added;
}

Create::Added Create::create_and_hand_out(Connection& connection, const Statement& create, const Parameters& parameters,
                                          const std::vector<std::size_t>& tried) {
  const auto policies = runner_.policies();
  connection.begin();
  Added added = take_created(connection.run(create, parameters), tried);
  std::vector<Execution> fresh;
  for (const std::size_t i : tried) {
    if (added.contains(submissions_[i].execution.id)) fresh.push_back(outcomes_[i].execution);
  }
  std::vector<Execution*> candidates;
  for (Execution& execution : fresh) candidates.push_back(&execution);
  Starts starts;
  waiters_.outcomes.clear();  // of a failed try
  hand_out(waiters_, candidates, *policies, now_, [&](const Execution& started) {
    starts.add(started, added.at(started.id));
    return std::vector<Event>();  // a new workflow has none
  });
  starts.send(connection);
  connection.commit();
  return added;
}

void Create::write(Batch& batch, const Submission& submission) {
  write_facts(batch, submission.execution, runner_.queues().find(queue_of(submission)).value());
  batch.next().duration_if(submission.idempotency_ttl);
  batch.next().time_if(submission.run_at);
  batch.next().integer(submission.delay.count());
  batch.next().time_if(submission.execution.deadline_at);
  batch.next().duration_if(submission.deadline);
  batch.next().word(submission.execution.status);
}

}  // namespace hapax::postgres::fast
