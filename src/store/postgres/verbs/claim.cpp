// Claiming walks the ready index of each type in each queue from its highest priority down, one seek per priority: a
// task that waits for its time hides none of those behind it, and what others are claiming now is passed over.
//
// Where a queue has limits, its row is locked first: so they are exact over all servers. A queue without limits pays
// nothing for that; that tasks have concurrency keys is learnt by meeting one.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "core/transition.h"
#include "store/postgres/tables/run_tables.h"
#include "store/postgres/verbs/due_tasks.h"
#include "store/postgres/verbs/start.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/claim.h"

namespace hapax::postgres {

namespace {

constexpr std::int64_t kChunk = 64;         // candidates read ahead, where there are several queues
constexpr std::int64_t kChunkOfKeys = 512;  // where some may have to be parked

// What is pending there: of all types, one look for each; or of these.
const Statement kTypes{"claim_types", R"sql(
WITH RECURSIVE k (type) AS (
  (SELECT o.type FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 ORDER BY o.type LIMIT 1)
  UNION ALL
  SELECT (SELECT o.type FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.type > k.type
          ORDER BY o.type LIMIT 1) FROM k WHERE k.type IS NOT NULL)
SELECT type FROM k WHERE type IS NOT NULL)sql"};
const Statement kTypesOf{"claim_types_of", R"sql(
SELECT g.type FROM unnest($2::bytea[]) AS g (type), LATERAL (
  SELECT FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.type = g.type
  ORDER BY o.priority DESC, o.run_at LIMIT 1) x)sql"};

const Statement kLockLimits{"lock_limits",
                            "SELECT queue_no, full_at_ns, rate_count, rate_per_ms, rate_burst FROM queues"
                            " WHERE queue_no = ANY($1::int4[]) ORDER BY queue_no FOR UPDATE"};
const Statement kPutRate{"put_rate",
                         "UPDATE queues SET full_at_ns = $2::int8, rate_count = $3::int8, rate_per_ms = $4::int8,"
                         " rate_burst = $5::int8 WHERE queue_no = $1::int4"};

const Statement kCountRunning{"count_running", "SELECT count(*) FROM open WHERE status = 1 AND queue_no = $1::int4"};
const Statement kCountRunningByKey{
    "count_running_by_key",
    "SELECT g.concurrency_key, (SELECT count(*) FROM open o WHERE o.status = 1 AND o.queue_no = $1::int4"
    " AND o.concurrency_key = g.concurrency_key) FROM unnest($2::bytea[]) AS g (concurrency_key)"};

const Statement kPark{"park", "UPDATE open SET parked = true WHERE id = ANY($1::uuid[])"};
const Statement kUnparkAll{"unpark_all", "UPDATE open SET parked = false WHERE parked"};

RateState read_rate(Cells& cells) {
  RateState state;
  state.full_at_ns = cells.integer();
  state.rate.count = cells.integer();
  state.rate.per = Duration(cells.integer());
  state.rate.burst = cells.integer();
  return state;
}

void send_rate(Connection& connection, std::int32_t queue_no, const RateState& state) {
  const auto& [count, per, burst] = state.rate;
  Parameters parameters;
  parameters.int4(queue_no).int8(state.full_at_ns).int8(count).int8(per.count()).int8(burst);
  connection.send_silently(kPutRate, parameters);
}

}  // namespace

// One queue during a batch of claims: what its limits still let through, and within a request, its due tasks of the
// types that are asked for, in order.
class QueueScan final : public rules::RunningCounts {
 public:
  QueueScan(Claim& claim, Workspace& workspace, std::int32_t queue_no, const QueuePolicy& policy, bool is_locked)
      : claim_(claim),
        workspace_(workspace),
        queue_no_(queue_no),
        policy_(policy),
        is_locked_(is_locked),
        limits_(policy, *this, workspace.now()) {}

  std::int32_t queue_no() const { return queue_no_; }
  void read_rate(Cells& cells) { limits_.set_rate(postgres::read_rate(cells)); }
  void count_running() {
    if (!policy_.max_running) return;
    const Rows rows = workspace_.connection().run(kCountRunning, Parameters().int4(queue_no_));
    running_ = Cells(rows, 0).integer();
  }

  // Asks what there is of these types: what is sent here is received there. Of one type nothing is asked.
  void send_types(const std::vector<std::string>& types) {
    types_ = types;
    look_again_.reset();
    is_asked_ = false;
    if (types.size() == 1) return;
    if (auto known = claim_.known_types(queue_no_)) {  // a full scan would take too long now
      std::erase_if(*known, [&](const std::string& type) {
        return !types.empty() && std::find(types.begin(), types.end(), type) == types.end();
      });
      types_ = *std::move(known);
      look_again_ = workspace_.now() + claim_.wait_for_scan(queue_no_);
      return;
    }
    is_asked_ = true;
    asked_at_ = ScanBackoff::Clock::now();
    Parameters parameters;
    parameters.int4(queue_no_);
    if (types.empty()) return workspace_.connection().send(kTypes, parameters);
    Array array(Type::bytea);
    for (const std::string& type : types) array.bytes(type);
    workspace_.connection().send(kTypesOf, parameters.array(std::move(array)));
  }
  void receive_types() {
    if (!is_asked_) return;
    const Rows rows = workspace_.connection().receive();
    claim_.scanned(queue_no_, ScanBackoff::Clock::now() - asked_at_, rows.size());
    types_.clear();
    for (int i = 0; i < rows.size(); ++i) types_.push_back(Cells(rows, i).text());
  }
  std::size_t types() const { return types_.size(); }

  void begin_request(std::int64_t limit, bool is_alone) {
    std::int64_t chunk = is_alone ? std::max<std::int64_t>(limit, 1) : std::min(kChunk, limit + 1);
    if (is_locked_ && claim_.has_keys(queue_no_)) chunk = std::max(chunk, kChunkOfKeys);
    due_.clear();
    ended_ = is_out_of_rate_ = false;
    for (const std::string& type : types_) due_.emplace_back(claim_, workspace_, queue_no_, type, chunk);
  }
  void send_scans() {
    for (DueTasks& due : due_) due.send_scan();
  }
  void receive_scans() {
    for (DueTasks& due : due_) due.receive_scan();
  }

  void end_request() {
    for (DueTasks& due : due_) left_some_ = left_some_ || due.head() || due.was_scanned();
  }

  // Other claims have skipped what was locked here and not taken: they should claim again once this transaction ends.
  bool left_some() const { return left_some_; }

  // The first due task that the limits let through, or null.
  Row* next() {
    using Verdict = rules::QueueLimits::Verdict;
    while (Row* candidate = head()) {
      const Verdict verdict = limits_.judge(candidate->execution.concurrency_key);
      if (verdict == Verdict::go) return candidate;
      if (verdict != Verdict::key_is_full) {
        ended_ = true;
        is_out_of_rate_ = verdict == Verdict::out_of_rate;
        return nullptr;
      }
      parked_.raw(candidate->execution.id);
      first_->skip();
    }
    return nullptr;
  }
  std::optional<rules::Rank> next_rank() {
    const Row* row = next();
    return row ? std::optional(rules::rank_of(row->execution)) : std::nullopt;
  }

  // Reads all of the task that next() gave. False: it was damaged, and next() gives another.
  bool read_whole() { return first_->read_whole(); }

  // Hands out the task that next() gave.
  Execution take_next(const ClaimRequest& request) {
    Row& row = *first_->head();
    first_->skip();
    limits_.take(row.execution.concurrency_key);
    start_attempt(row.execution, request.worker, request.secret, request.lease, workspace_.now());
    started_.add(row.execution, row.location);
    claim_.ended_at(queue_no_, row.execution);
    return std::move(row.execution);
  }

  // Sends what was started and parked: the next scan does not find it again.
  void write() {
    started_.send(workspace_.connection());
    if (parked_.size() > 0) {
      Parameters parameters;
      parameters.array(std::move(parked_));
      workspace_.connection().send_silently(kPark, parameters);
      parked_ = Array(Type::uuid);
    }
  }

  void write_rate() {
    if (limits_.rate_changed()) send_rate(workspace_.connection(), queue_no_, limits_.rate());
  }

  // When the clock alone may let another task through: what is sent here is received there.
  void send_next_at() {
    for (DueTasks& due : due_) due.send_next_at();
  }
  std::optional<Time> receive_next_at() {
    std::optional<Time> earliest = look_again_;
    for (DueTasks& due : due_) keep_earliest(earliest, due.receive_next_at());
    if (is_out_of_rate_) keep_earliest(earliest, limits_.next_permit());
    return earliest;
  }

 private:
  // The first of all types, which is at the head of first_.
  Row* head() {
    Row* first = nullptr;
    if (ended_) return first;
    for (DueTasks& due : due_) {
      while (due.must_read()) read_on(due);
      Row* row = due.head();
      if (!row || (first && !goes_before(row->execution, first->execution))) continue;
      first = row;
      first_ = &due;
    }
    return first;
  }

  void read_on(DueTasks& due) {
    if (!due.was_scanned()) {
      write();
      due.send_scan();
      due.receive_scan();
    }
    if (due.read_scanned()) {
      claim_.set_keys(queue_no_, true);
      if (!is_locked_) throw Claim::KeyMet();
      count_running_by_key(due.candidates());
    } else if (!due.candidates().empty() && due_.size() == 1) {
      claim_.set_keys(queue_no_, false);
    }
  }

  void count_running_by_key(const std::vector<Row>& candidates) {
    std::set<std::string> keys;
    for (const Row& row : candidates) {
      const auto& key = row.execution.concurrency_key;
      if (key && !running_by_key_.contains(*key)) keys.insert(*key);
    }
    Array array(Type::bytea);
    for (const std::string& key : keys) array.bytes(key);
    Parameters parameters;
    parameters.int4(queue_no_).array(std::move(array));
    const Rows rows = workspace_.connection().run(kCountRunningByKey, parameters);
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      std::string key = cells.text();
      running_by_key_[std::move(key)] = cells.integer();
    }
  }

  std::int64_t running() override { return running_; }
  std::int64_t running_with(const std::string& key) override { return running_by_key_[key]; }

  Claim& claim_;
  Workspace& workspace_;
  const std::int32_t queue_no_;
  const QueuePolicy& policy_;
  const bool is_locked_;
  std::int64_t running_ = 0;
  std::map<std::string, std::int64_t> running_by_key_;
  bool left_some_ = false;

  std::vector<std::string> types_;  // of the request; then those of which there is something
  bool is_asked_ = false;
  ScanBackoff::Clock::time_point asked_at_;
  std::optional<Time> look_again_;  // where it was not asked what types there are

  std::deque<DueTasks> due_;  // by type
  DueTasks* first_ = nullptr;
  bool ended_ = false, is_out_of_rate_ = false;  // in this request
  rules::QueueLimits limits_;
  Starts started_;
  Array parked_{Type::uuid};
};

namespace {

using Turns = std::map<std::int32_t, QueueScan>;

std::vector<QueueName> queues_of(const ClaimRequest& request) {
  std::vector<QueueName> names;
  for (const std::string& queue : request.queues) {
    if (request.tasks) names.push_back({request.name_space, queue, Kind::task});
    if (request.workflows) names.push_back({request.name_space, queue, Kind::workflow});
  }
  return names;
}

std::vector<const Execution*> workflows_in(const ClaimOutcome& outcome) {
  std::vector<const Execution*> runs;
  for (const Execution& execution : outcome.executions) {
    if (execution.kind == Kind::workflow) runs.push_back(&execution);
  }
  return runs;
}

ClaimOutcome claim_one(Connection& connection, const ClaimRequest& request, const std::vector<QueueScan*>& turns) {
  const std::int64_t limit = std::max(request.limit, 0);
  for (QueueScan* turn : turns) turn->send_types(request.types);
  for (QueueScan* turn : turns) turn->receive_types();
  std::size_t scans = 0;
  for (const QueueScan* turn : turns) scans += turn->types();
  for (QueueScan* turn : turns) turn->begin_request(limit, scans == 1);
  if (limit > 0 && scans > 1) {
    for (QueueScan* turn : turns) turn->send_scans();
    for (QueueScan* turn : turns) turn->receive_scans();
  }
  ClaimOutcome outcome;
  PageBudget budget;
  while (std::ssize(outcome.executions) < limit) {
    QueueScan* first = rules::first_of(turns);
    if (!first) break;
    PageBudget with_next = budget;
    outcome.more = !with_next.take(first->next()->payload_bytes());
    if (outcome.more) break;
    if (!first->read_whole()) continue;
    budget = with_next;
    outcome.executions.push_back(first->take_next(request));
  }
  for (QueueScan* turn : turns) {
    turn->write();
    turn->end_request();
  }
  const bool wants_more = std::ssize(outcome.executions) < limit;
  const std::vector<const Execution*> workflows = workflows_in(outcome);
  if (!workflows.empty()) send_read_news(connection, workflows);
  if (wants_more) {
    for (QueueScan* turn : turns) turn->send_next_at();
  }
  if (!workflows.empty()) {
    outcome.events = receive_news(connection, workflows.size());
    drop_damaged(outcome);
  }
  if (wants_more) {
    for (QueueScan* turn : turns) keep_earliest(outcome.next_at, turn->receive_next_at());
  }
  return outcome;
}

}  // namespace

std::vector<ClaimOutcome> Claim::run(Connection& connection, std::span<const ClaimRequest> requests, bool unpark) {
  const auto policies = runner_.policies();
  connection.begin();
  Workspace workspace(connection, runner_.queues(), *policies, runner_.clock());
  if (unpark) connection.send_silently(kUnparkAll);
  runner_.note(workspace.now());

  std::vector<QueueName> names;
  for (const ClaimRequest& request : requests) {
    for (QueueName& name : queues_of(request)) names.push_back(std::move(name));
  }
  runner_.queues().look_up(connection, names);

  Turns turns;
  Array locked(Type::int4);
  for (const QueueName& name : names) {
    const QueuePolicy* policy = rules::limits_of(*policies, name.name_space, name.queue, name.kind);
    const auto queue_no = policy ? runner_.queues().find(name) : std::nullopt;
    if (!queue_no || turns.contains(*queue_no)) continue;
    const bool is_locked = has_limits(*policy) || has_keys(*queue_no);
    if (is_locked) locked.integer(*queue_no);
    turns.try_emplace(*queue_no, *this, workspace, *queue_no, *policy, is_locked);
  }
  if (locked.size() > 0) {
    Parameters parameters;
    parameters.array(std::move(locked));
    const Rows rows = connection.run(kLockLimits, parameters);
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      QueueScan& turn = turns.at(static_cast<std::int32_t>(cells.integer()));
      turn.read_rate(cells);
      turn.count_running();
    }
  }

  std::vector<ClaimOutcome> outcomes;
  for (const ClaimRequest& request : requests) {
    std::vector<QueueScan*> named;
    for (const QueueName& name : queues_of(request)) {
      const auto queue_no = runner_.queues().find(name);
      const auto turn = queue_no ? turns.find(*queue_no) : turns.end();
      if (turn != turns.end()) named.push_back(&turn->second);
    }
    outcomes.push_back(claim_one(connection, request, named));
    if (named.size() == 1 && request.types.size() == 1) {
      set_full(named.front()->queue_no(), request.types.front(),
               std::ssize(outcomes.back().executions) == request.limit);
    }
  }
  for (auto& [queue_no, turn] : turns) turn.write_rate();
  connection.commit();
  if (std::any_of(turns.begin(), turns.end(), [](const auto& turn) { return turn.second.left_some(); }))
    left_some_ = true;
  return outcomes;
}

void take_back(Workspace& workspace, const ReturnedPermits& permits) {
  const auto queue_no = workspace.queues().find({permits.name_space, permits.queue, Kind::task});
  if (!queue_no) return;
  Array numbers(Type::int4);
  numbers.integer(*queue_no);
  Parameters parameters;
  const Rows rows = workspace.connection().run(kLockLimits, parameters.array(std::move(numbers)));
  if (rows.empty()) return;
  Cells cells(rows, 0);
  cells.skip();
  RateState rate = read_rate(cells);
  const QueuePolicy& policy = workspace.policies().of(permits.name_space, permits.queue);
  return_permits(*policy.rate_limit, rate, workspace.now(), permits.count);
  send_rate(workspace.connection(), *queue_no, rate);
}

std::vector<ClaimOutcome> Claim::claim_new(std::span<const ClaimRequest> requests) {
  const auto queue_no = short_way(requests);
  if (!queue_no) return long_way(requests);
  ClaimOutcome taken;
  try {
    taken = take_due(requests.front(), *queue_no);
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::unavailable) throw;  // nothing was taken: perhaps a lock wait was too long
  }
  ClaimRequest rest = requests.front();
  rest.limit -= static_cast<std::int32_t>(taken.executions.size());
  if ((taken.more && !taken.executions.empty()) || rest.limit == 0) return {std::move(taken)};
  try {
    std::vector<ClaimOutcome> outcomes = long_way({&rest, 1});
    std::vector<Execution>& others = outcomes.front().executions;
    others.insert(others.begin(), std::move_iterator(taken.executions.begin()),
                  std::move_iterator(taken.executions.end()));
    std::sort(others.begin(), others.end(), goes_before);
    return outcomes;
  } catch (const Failure&) {
    if (taken.executions.empty()) throw;
    return {std::move(taken)};  // which is committed
  }
}

std::vector<ClaimOutcome> Claim::long_way(std::span<const ClaimRequest> requests) {
  for (;;) {
    // Unparking holds this lock exclusively, so no claim parks under old limits.
    std::shared_lock<CallMutex> beside(unparking_, std::defer_lock);
    std::unique_lock<CallMutex> alone(unparking_, std::defer_lock);
    unpark_ ? alone.lock() : beside.lock();
    const bool unpark = alone && unpark_.exchange(false);
    try {
      return runner_.attempt([&](Connection& connection) { return run(connection, requests, unpark); });
    } catch (const KeyMet&) {  // From now on the queue is locked.
      if (unpark) unpark_ = true;
    } catch (...) {
      if (unpark) unpark_ = true;
      throw;
    }
  }
}

bool Claim::has_keys(std::int32_t queue_no) {
  const std::lock_guard lock(mutex_);
  return queues_[queue_no].has_keys;
}

void Claim::set_keys(std::int32_t queue_no, bool has_keys) {
  const std::lock_guard lock(mutex_);
  queues_[queue_no].has_keys = has_keys;
}

void Claim::set_damaged(std::int32_t queue_no, bool has_damaged) {
  const std::lock_guard lock(mutex_);
  queues_[queue_no].has_damaged = has_damaged;
}

void Claim::set_full(std::int32_t queue_no, const std::string& type, bool is_full) {
  const std::lock_guard lock(mutex_);
  known_type(queue_no, type).is_full = is_full;
}

Claim::KnownType& Claim::known_type(std::int32_t queue_no, const std::string& type) {
  constexpr std::size_t kMostTypes = 10'000;
  auto& types = queues_[queue_no].types;
  if (types.size() >= kMostTypes && !types.contains(type)) types.clear();
  return types[type];
}

std::optional<std::vector<std::string>> Claim::known_types(std::int32_t queue_no) {
  const std::lock_guard lock(mutex_);
  const Known& known = queues_[queue_no];
  if (known.pace.full_scan_allowed()) return std::nullopt;
  std::vector<std::string> types;
  for (const auto& [type, state] : known.types) {
    if (state.last.is_known()) types.push_back(type);
  }
  return types;
}

Claim::Position Claim::begin_of(std::int32_t queue_no, const std::string& type) {
  const std::lock_guard lock(mutex_);
  const Known& known = queues_[queue_no];
  const auto state = known.types.find(type);
  return known.pace.full_scan_allowed() || state == known.types.end() ? Position() : state->second.last;
}

void Claim::scanned(std::int32_t queue_no, ScanBackoff::Clock::duration time, int rows) {
  if (runner_.clock()) return;  // an injected clock must stay deterministic: no pacing
  const std::lock_guard lock(mutex_);
  queues_[queue_no].pace.took(time, rows);
}

Duration Claim::wait_for_scan(std::int32_t queue_no) {
  const std::lock_guard lock(mutex_);
  return std::max(Duration(1), std::chrono::ceil<Duration>(queues_[queue_no].pace.wait()));
}

void Claim::ended_at(std::int32_t queue_no, const Execution& last) {
  constexpr Duration kLooseEnd{1000};  // between two clocks, or between the time of a row and its commit
  const std::lock_guard lock(mutex_);
  known_type(queue_no, last.type).last = {last.priority, last.run_at - kLooseEnd};
}

void Claim::forget_positions() {
  const std::lock_guard lock(mutex_);
  for (auto& [queue_no, known] : queues_) {
    for (auto& [type, state] : known.types) state.last = {};
  }
}

}  // namespace hapax::postgres
