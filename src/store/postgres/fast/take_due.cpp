// The short claim of one type, from a queue without limits whose last claim was full: one statement, in one round trip,
// starts an attempt on each of the first due tasks. What it leaves open (too few, or none because one has a concurrency
// key) the general claim in claim.cpp handles. It stands for rules/claim.h where no limits apply.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "store/postgres/tables/due.h"
#include "store/postgres/verbs/start.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/hand_out.h"

namespace hapax::postgres {

namespace {

// 'hapa' in ASCII: with the number of a queue, the lock of the short claim on it.
constexpr std::int32_t kTakeLock = 0x68617061;

// start_attempt() and Execution::due_at(), as SQL: $7 is the lease in milliseconds, $8 its secret, $9 the worker, $10
// the longest input that is read at once.
//
// Rows are not locked before they are changed, which would cost half as much as the change. So no other transaction may
// be at these rows: of two processes that try the short claim one gives way, and a row that is locked, now or by a
// rolled-back transaction, sends the claim to the general path, which skips it. If a row is being changed, the
// statement waits and checks the row again.
//
// The form of the conditions on status and execution keeps the planner from starting with any index.
std::string take_sql() {
  const std::string now = "(SELECT now FROM t)";  // asked once; joined, it would be read again for each row
  return fmt::format(R"sql(/* take */{0},
t AS MATERIALIZED (SELECT coalesce($2::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now),
due AS MATERIALIZED (SELECT s.location, s.locker, s.concurrency_key FROM {1} LIMIT $6::int8),
locations AS MATERIALIZED (
  SELECT CASE WHEN bool_and(locker = 0::text::xid AND concurrency_key IS NULL) AND pg_try_advisory_xact_lock({2}, $1::int4)
         THEN array_agg(location) END AS list FROM due)
UPDATE open s SET status = {3}, attempt = s.attempt + 1, started_at = {6}, worker = $9::bytea, lease_secret = $8::bytea,
  lease_expires_at = {6} + $7::int8, attempt_ends_by = coalesce({6} + e.timeout_ms, s.attempt_ends_by),
  due_at = least(s.deadline_at, s.cancel_by, {6} + $7::int8, coalesce({6} + e.timeout_ms, s.attempt_ends_by))
FROM executions e
WHERE s.ctid = ANY((SELECT list FROM locations)::tid[]) AND s.status + 0 = {4} AND NOT s.parked AND s.run_at <= {6}
  AND (s.deadline_at IS NULL OR s.deadline_at > {6}) AND e.id = ANY(ARRAY[s.id])
RETURNING {6}, s.ctid, octet_length(e.input), {5})sql",
                     kLevels, due_rows(now, ""), kTakeLock, static_cast<int>(Status::running),
                     static_cast<int>(Status::pending), begun_columns_with_input_up_to("$10::int8"), now);
}

const Statement kTake{"take", take_sql()};

}  // namespace

std::optional<std::int32_t> Claim::short_way(std::span<const ClaimRequest> requests) {
  if (!runner_.fast().take_due || requests.size() != 1 || unpark_) return std::nullopt;
  const ClaimRequest& request = requests.front();
  if (!request.tasks || request.workflows || request.limit <= 0) return std::nullopt;
  if (request.queues.size() != 1 || request.types.size() != 1) return std::nullopt;
  const QueueName name{request.name_space, request.queues.front(), Kind::task};
  const auto queue_no = runner_.queues().find(name);
  const auto policies = runner_.policies();
  const QueuePolicy& policy = policies->of(name.name_space, name.queue);
  if (!queue_no || policy.paused || has_limits(policy)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Known& known = queues_[*queue_no];
  const auto type = known.types.find(request.types.front());
  const bool is_full = type != known.types.end() && type->second.is_full;
  return is_full && !known.has_keys && !known.has_damaged ? queue_no : std::nullopt;
}

ClaimOutcome Claim::take_due(const ClaimRequest& request, std::int32_t queue_no) {
  std::unique_lock alone(taking_);  // or one of two would have to turn back
  const Position from = begin_of(queue_no, request.types.front());
  const auto began = ScanBackoff::Clock::now();
  Parameters parameters;
  parameters.int4(queue_no).int8_if(runner_.now_parameter()).int4(from.priority).int8(to_ms(from.run_at));
  parameters.bytes(request.types.front())
      .int8(request.limit)
      .int8(request.lease.count())
      .raw(request.secret)
      .bytes(request.worker);
  const Rows rows = runner_.run_at_once(kTake, parameters.int8(kPageBytes / request.limit));
  if (!from.is_known()) scanned(queue_no, ScanBackoff::Clock::now() - began, rows.size());
  alone.unlock();  // what was taken is read while the next one takes

  std::vector<Row> taken(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    Row& row = taken[static_cast<std::size_t>(i)];
    const Time now = cells.time();
    if (i == 0) runner_.note(now);
    const auto location = cells.raw<RowLocation>();
    row.input_bytes = cells.integer();
    Execution& task = row.execution;
    read_begun(cells, task);
    runner_.locations().put(task.id, location);
    task.name_space = request.name_space;
    task.queue = request.queues.front();
    task.status = Status::running;
    task.started_at = now;
    task.worker = request.worker;
    task.lease_secret = request.secret;
    task.lease_expires_at = now + request.lease;
  }
  const auto first = [](const Row& a, const Row& b) { return goes_before(a.execution, b.execution); };
  if (!std::is_sorted(taken.begin(), taken.end(), first)) std::sort(taken.begin(), taken.end(), first);
  if (!taken.empty()) ended_at(queue_no, taken.back().execution);
  return keep_what_fits(std::move(taken), queue_no);
}

// What does not fit into the answer is given back; so is what is damaged, which waits in its place as on the long way.
ClaimOutcome Claim::keep_what_fits(std::vector<Row> taken, std::int32_t queue_no) {
  PageBudget budget;
  LongInputs inputs;
  auto fitting = taken.begin();
  for (; fitting != taken.end(); ++fitting) {
    Execution& task = fitting->execution;
    if (task.damaged) continue;
    if (!budget.take(fitting->payload_bytes())) break;
    if (task.input.empty()) inputs.add(task);
  }
  // They are already leased: whatever fails from here on, what was read is handed out, and the rest given back.
  std::exception_ptr failure;
  try {
    if (!inputs.empty()) runner_.read([&](Workspace& workspace) { return inputs.read(workspace.connection()), true; });
  } catch (const Failure&) {
    failure = std::current_exception();
  }

  ClaimOutcome outcome;
  outcome.executions.reserve(taken.size());
  std::vector<Extension> returned;
  for (auto row = taken.begin(); row != taken.end(); ++row) {
    Execution& task = row->execution;
    if (task.damaged) set_damaged(queue_no, true);
    if (row < fitting && !task.damaged && !task.input.empty()) {
      outcome.executions.push_back(std::move(task));
    } else {
      outcome.more = outcome.more || !task.damaged;
      returned.push_back({{task.id, task.attempt, *task.lease_secret}, Duration::zero(), task.name_space});
    }
  }
  if (returned.empty()) return outcome;
  try {
    extend(runner_, returned);
  } catch (const Failure&) {
    // Their leases end by themselves.
  }
  if (outcome.more) forget_positions();
  if (failure && outcome.executions.empty()) std::rethrow_exception(failure);
  return outcome;
}

}  // namespace hapax::postgres
