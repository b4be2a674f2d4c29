// Claiming walks the ready index of each queue from its highest priority down, one seek per priority: a task that waits
// for its time hides none of those behind it, and what others are claiming at the moment is passed over.
//
// Where a queue has limits, its row is locked first: so they are exact over all servers. A queue without limits pays
// nothing for that; that tasks have concurrency keys is learnt by meeting one.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "core/transition.h"
#include "store/postgres/due.h"
#include "store/postgres/run_tables.h"
#include "store/postgres/start.h"
#include "store/postgres/verbs.h"
#include "store/rules/claim.h"

namespace hapax::postgres {

namespace {

constexpr std::int64_t kChunk = 64;             // candidates read ahead, where there are several queues
constexpr std::int64_t kChunkOfKeys = 512;      // where some may have to be parked
constexpr std::int64_t kLongestChunk = 10'000;  // where all before it were damaged

const Statement kDue{
    "due", fmt::format("{} SELECT s.spot, octet_length(e.input), {} FROM {} JOIN {} ON true LIMIT $5::int8", kLevels,
                       row_columns_with_input_up_to("$6::int8"), due_rows("$2::int8", "FOR UPDATE SKIP LOCKED"),
                       lookup("executions", "id", "s.id", "e"))};

const Statement kNextRunAt{"next_run_at", kLevels + R"sql(
SELECT min(n.run_at) FROM level l, LATERAL (
  SELECT o.run_at FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4 AND o.priority = l.priority
  AND o.run_at > $2::int8 ORDER BY o.run_at LIMIT 1) n)sql"};

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

// One queue during a batch of claims: what its limits still let through, and within a request, its due tasks in order.
class QueueTurn final : public rules::RunningCounts {
 public:
  QueueTurn(Claim& claim, Workspace& workspace, std::int32_t queue_no, const QueuePolicy& policy, bool is_locked)
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

  void begin_request(std::int64_t limit, bool is_alone) {
    chunk_ = is_alone ? std::max<std::int64_t>(limit, 1) : std::min(kChunk, limit + 1);
    if (is_locked_ && claim_.has_keys(queue_no_)) chunk_ = std::max(chunk_, kChunkOfKeys);
    candidates_.clear();
    position_ = 0;
    ended_ = all_read_ = false;
    look_again_.reset();
    scanned_.reset();
  }

  // Reads ahead, so that the queues of a request take one round trip: what is sent here is received there.
  void send_scan() {
    scan_from_ = claim_.begin_of(queue_no_);
    scan_began_ = ScanPace::Clock::now();
    Parameters parameters;
    parameters.int4(queue_no_).time(workspace_.now()).int4(scan_from_.priority).int8(to_ms(scan_from_.run_at));
    workspace_.connection().send(kDue, parameters.int8(chunk_).int8(kPageBytes / chunk_));
  }
  void receive_scan() {
    scanned_ = workspace_.connection().receive();
    if (!scan_from_.is_known()) {
      claim_.scanned(queue_no_, ScanPace::Clock::now() - scan_began_, scanned_->size());
    } else if (scanned_->size() < chunk_) {  // there may be more before that
      look_again_ = workspace_.now() + claim_.wait_for_scan(queue_no_);
    }
  }

  void end_request() { left_some_ = left_some_ || position_ < candidates_.size(); }

  // Other claims have skipped what was locked here and not taken: they should claim again once this transaction ends.
  bool left_some() const { return left_some_; }

  // The first due task that the limits let through, or null.
  Row* next() {
    using Verdict = rules::QueueLimits::Verdict;
    while (Row* candidate = head()) {
      const Verdict verdict = limits_.judge(candidate->execution.concurrency_key);
      if (verdict == Verdict::go) return candidate;
      if (verdict != Verdict::key_is_full) return end();
      parked_.raw(candidate->execution.id);
      ++position_;
    }
    return nullptr;
  }
  std::optional<rules::Rank> next_rank() {
    const Row* row = next();
    return row ? std::optional(rules::rank_of(row->execution)) : std::nullopt;
  }

  // Reads the input of the task that next() gave, where it was too long to be read with the others, and those of the
  // next ones that fit into one answer with it. False: it was damaged, and next() gives another.
  bool read_whole() {
    const auto head = candidates_.begin() + static_cast<std::ptrdiff_t>(position_);
    if (!head->execution.input.empty()) return true;
    const ExecutionId id = head->execution.id;
    PageBudget budget;
    LongInputs inputs;
    for (auto row = head; row != candidates_.end() && budget.take(row->payload_bytes()); ++row) {
      if (row->execution.input.empty()) inputs.add(row->execution);
    }
    inputs.read(workspace_.connection());
    drop_damaged();
    return position_ < candidates_.size() && candidates_[position_].execution.id == id;
  }

  // Hands out the task that next() gave.
  Execution take_next(const ClaimRequest& request) {
    Row& row = candidates_[position_++];
    limits_.take(row.execution.concurrency_key);
    start_attempt(row.execution, request.worker, request.secret, request.lease, workspace_.now());
    started_.add(row.execution, row.spot);
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
    const Claim::Position from = claim_.begin_of(queue_no_);
    Parameters parameters;
    parameters.int4(queue_no_).time(workspace_.now()).int4(from.priority).int8(to_ms(from.run_at));
    workspace_.connection().send(kNextRunAt, parameters);
  }
  std::optional<Time> receive_next_at() {
    const Rows rows = workspace_.connection().receive();
    std::optional<Time> earliest = Cells(rows, 0).time_if();
    keep_earliest(earliest, look_again_);
    keep_earliest(earliest, limits_.next_permit());
    return earliest;
  }

 private:
  Row* end() {
    ended_ = true;
    return nullptr;
  }

  Row* head() {
    while (!ended_ && position_ == candidates_.size()) read_on();
    return ended_ ? nullptr : &candidates_[position_];
  }

  void read_on() {
    if (all_read_) {
      end();
      return;
    }
    if (!scanned_) {
      write();
      send_scan();
      receive_scan();
    }
    const Rows rows = *std::exchange(scanned_, std::nullopt);
    candidates_.clear();
    position_ = 0;
    bool any_key = false;
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      Row& row = candidates_.emplace_back();
      row.spot = cells.raw<Spot>();
      row.input_bytes = cells.integer();
      read_row(cells, row);
      any_key = any_key || row.execution.concurrency_key;
    }
    all_read_ = rows.size() < chunk_;
    claim_.set_damaged(queue_no_, false);
    drop_damaged();
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Row& a, const Row& b) { return goes_before(a.execution, b.execution); });
    workspace_.name(candidates_);
    if (any_key) {
      claim_.set_keys(queue_no_, true);
      if (!is_locked_) throw Claim::KeyMet();
      count_running_by_key();
    } else if (!candidates_.empty()) {
      claim_.set_keys(queue_no_, false);
    }
  }

  // Damaged ones stay where they are: if a scan found nothing else, only a longer one gets past them.
  void drop_damaged() {
    if (std::erase_if(candidates_, [](const Row& row) { return row.execution.damaged; }) == 0) return;
    claim_.set_damaged(queue_no_, true);
    if (!candidates_.empty() || all_read_) return;
    all_read_ = chunk_ >= kLongestChunk;
    chunk_ = std::min(4 * chunk_, kLongestChunk);
  }

  void count_running_by_key() {
    std::set<std::string> keys;
    for (const Row& row : candidates_) {
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
  std::int64_t chunk_ = 1;
  std::int64_t running_ = 0;
  std::map<std::string, std::int64_t> running_by_key_;
  bool left_some_ = false;
  std::optional<Time> look_again_;  // where the scan did not begin at the beginning

  std::vector<Row> candidates_;
  std::size_t position_ = 0;
  bool ended_ = false, all_read_ = false;
  Claim::Position scan_from_;
  ScanPace::Clock::time_point scan_began_;
  std::optional<Rows> scanned_;
  rules::QueueLimits limits_;
  Starts started_;
  Array parked_{Type::uuid};
};

namespace {

using Turns = std::map<std::int32_t, QueueTurn>;

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

ClaimOutcome claim_one(Connection& connection, const ClaimRequest& request, const std::vector<QueueTurn*>& turns) {
  const std::int64_t limit = std::max(request.limit, 0);
  for (QueueTurn* turn : turns) turn->begin_request(limit, turns.size() == 1);
  if (limit > 0 && turns.size() > 1) {
    for (QueueTurn* turn : turns) turn->send_scan();
    for (QueueTurn* turn : turns) turn->receive_scan();
  }
  ClaimOutcome outcome;
  PageBudget budget;
  while (std::ssize(outcome.executions) < limit) {
    QueueTurn* first = rules::first_of(turns);
    if (!first) break;
    PageBudget with_next = budget;
    outcome.more = !with_next.take(first->next()->payload_bytes());
    if (outcome.more) break;
    if (!first->read_whole()) continue;
    budget = with_next;
    outcome.executions.push_back(first->take_next(request));
  }
  for (QueueTurn* turn : turns) {
    turn->write();
    turn->end_request();
  }
  const bool wants_more = std::ssize(outcome.executions) < limit;
  const std::vector<const Execution*> workflows = workflows_in(outcome);
  if (!workflows.empty()) send_read_news(connection, workflows);
  if (wants_more) {
    for (QueueTurn* turn : turns) turn->send_next_at();
  }
  if (!workflows.empty()) {
    outcome.events = receive_news(connection, workflows.size());
    drop_damaged(outcome);
  }
  if (wants_more) {
    for (QueueTurn* turn : turns) keep_earliest(outcome.next_at, turn->receive_next_at());
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
      QueueTurn& turn = turns.at(static_cast<std::int32_t>(cells.integer()));
      turn.read_rate(cells);
      turn.count_running();
    }
  }

  std::vector<ClaimOutcome> outcomes;
  for (const ClaimRequest& request : requests) {
    std::vector<QueueTurn*> named;
    for (const QueueName& name : queues_of(request)) {
      const auto queue_no = runner_.queues().find(name);
      const auto turn = queue_no ? turns.find(*queue_no) : turns.end();
      if (turn != turns.end()) named.push_back(&turn->second);
    }
    outcomes.push_back(claim_one(connection, request, named));
    if (named.size() == 1) set_full(named.front()->queue_no(), std::ssize(outcomes.back().executions) == request.limit);
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

std::vector<ClaimOutcome> Claim::operator()(std::span<const ClaimRequest> requests) {
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

void Claim::set_full(std::int32_t queue_no, bool is_full) {
  const std::lock_guard lock(mutex_);
  queues_[queue_no].is_full = is_full;
}

Claim::Position Claim::begin_of(std::int32_t queue_no) {
  const std::lock_guard lock(mutex_);
  const Known& known = queues_[queue_no];
  return known.pace.full_scan_allowed() ? Position() : known.last;
}

void Claim::scanned(std::int32_t queue_no, ScanPace::Clock::duration time, int rows) {
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
  queues_[queue_no].last = {last.priority, last.run_at - kLooseEnd};
}

void Claim::forget_positions() {
  const std::lock_guard lock(mutex_);
  for (auto& [queue_no, known] : queues_) known.last = {};
}

}  // namespace hapax::postgres
