// Claiming walks the ready index of each type in each queue from its highest priority down, one seek per priority: a
// task that waits for its time hides none of those behind it, and what is closed or of another type is never looked at.

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "core/transition.h"
#include "store/rules/hand_out.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

constexpr std::int64_t kChunk = 64;  // candidates read ahead, where there are several queues

constexpr std::int64_t kAboveAllPriorities = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;

}  // namespace

// What is due of one type in a queue, in order. The place in the list is that of its head.
class DueTasks {
 public:
  DueTasks(Claim& claim, Time now, std::int64_t queue_no, std::string type, std::int64_t chunk)
      : claim_(claim), now_(now), queue_no_(queue_no), type_(std::move(type)), chunk_(chunk) {}

  const Candidate* head() {
    while (!ended_ && position_ == candidates_.size()) read_on();
    return ended_ ? nullptr : &candidates_[position_];
  }
  void skip() { ++position_; }

  // When the clock alone makes another one due.
  std::optional<Time> next_at() {
    std::optional<Time> earliest;
    std::optional<std::int64_t> priority = kAboveAllPriorities;
    while ((priority = priority_below(*priority))) {
      Run run(claim_.next_run_at_);
      if (run.bind(queue_no_).bind(type_).bind(*priority).bind(now_).next()) keep_earliest(earliest, run.time(0));
    }
    return earliest;
  }

 private:
  std::optional<std::int64_t> priority_below(std::int64_t priority) {
    Run run(claim_.next_priority_);
    if (!run.bind(queue_no_).bind(type_).bind(priority).next()) return std::nullopt;
    return run.int64(0);
  }

  // The next chunk of this priority's due tasks, or those of the next priority.
  void read_on() {
    if (level_done_) {
      const auto priority = priority_below(priority_);
      ended_ = !priority;
      if (ended_) return;
      priority_ = *priority;
      after_ = {};
      after_.run_at = from_ms(std::numeric_limits<std::int64_t>::min());
    }
    candidates_.clear();
    position_ = 0;
    Run run(claim_.due_);
    run.bind(queue_no_).bind(type_).bind(priority_).bind(now_).bind(after_.run_at).bind(after_.id).bind(chunk_);
    while (run.next()) {
      candidates_.push_back(
          {{static_cast<std::int32_t>(priority_), run.time(0), run.bytes<ExecutionId>(1)}, run.int64(2)});
    }
    level_done_ = std::ssize(candidates_) < chunk_;
    if (!candidates_.empty()) after_ = candidates_.back().rank;
  }

  Claim& claim_;
  Time now_;
  std::int64_t queue_no_;
  std::string type_;
  std::int64_t chunk_;
  std::int64_t priority_ = kAboveAllPriorities;
  bool level_done_ = true, ended_ = false;
  rules::Rank after_;
  std::vector<Candidate> candidates_;
  std::size_t position_ = 0;
};

// One queue during a claim: its due tasks of the types that are asked for, in order, and what its limits still let
// through.
class QueueScan final : public rules::RunningCounts {
 public:
  QueueScan(Claim& claim, Batch& batch, std::int64_t queue_no, const std::vector<std::string>& types,
            const QueuePolicy& policy, std::int64_t chunk)
      : claim_(claim), batch_(batch), queue_no_(queue_no), limits_(policy, *this, batch.now) {
    if (policy.max_running) running_ = batch.tables.count_running(queue_no);
    if (policy.rate_limit) limits_.set_rate(claim.load_rate(queue_no));
    for (const std::string& type : types.empty() ? claim.types_in(queue_no) : types) {
      due_.emplace_back(claim, batch.now, queue_no, type, types.size() == 1 ? chunk : std::min(kChunk, chunk));
    }
  }

  // The first due task that the limits let through, or null.
  std::optional<rules::Rank> next_rank() {
    using Verdict = rules::QueueLimits::Verdict;
    while (!loaded_) {
      const Candidate* candidate = head();
      if (!candidate) return std::nullopt;
      rank_ = candidate->rank;
      loaded_ = batch_.tables.load_all(candidate->seq);
      const Execution& task = loaded_->execution;
      const bool is_passed_over = task.damaged || rules::is_past_deadline(task, batch_.now);
      const Verdict verdict = is_passed_over ? Verdict::key_is_full : limits_.judge(task.concurrency_key);
      if (verdict == Verdict::go) break;
      if (verdict != Verdict::key_is_full) {
        end();
        return std::nullopt;
      }
      if (!is_passed_over) batch_.tables.park(loaded_->seq);
      loaded_.reset();
      first_->skip();
    }
    return rank_;
  }

  // Of the task that next() gave.
  std::int64_t payload_bytes() const { return loaded_->execution.payload_bytes(); }

  // The task that next() gave, which counts as handed out.
  Row take_next() {
    Row row = *std::exchange(loaded_, std::nullopt);
    first_->skip();
    limits_.take(row.execution.concurrency_key);
    return row;
  }

  void save_rate() {
    if (limits_.rate_changed()) claim_.save_rate(queue_no_, limits_.rate());
  }

  // When the clock alone may let another task through.
  std::optional<Time> next_at() {
    std::optional<Time> earliest = limits_.next_permit();
    for (DueTasks& due : due_) keep_earliest(earliest, due.next_at());
    return earliest;
  }

 private:
  // Asked before any of that key is taken here.
  std::int64_t running() override { return running_; }
  std::int64_t running_with(const std::string& key) override {
    const auto known = running_by_key_.find(key);
    if (known != running_by_key_.end()) return known->second;
    return running_by_key_[key] = batch_.tables.count_running(queue_no_, key);
  }

  void end() {
    ended_ = true;
    loaded_.reset();
  }

  // The first of all types, which is at the head of first_.
  const Candidate* head() {
    const Candidate* first = nullptr;
    if (ended_) return first;
    for (DueTasks& due : due_) {
      const Candidate* candidate = due.head();
      if (!candidate || (first && !candidate->rank.goes_before(first->rank))) continue;
      first = candidate;
      first_ = &due;
    }
    return first;
  }

  Claim& claim_;
  Batch& batch_;
  std::int64_t queue_no_;
  std::int64_t running_ = 0;
  std::map<std::string, std::int64_t> running_by_key_;
  rules::QueueLimits limits_;

  std::deque<DueTasks> due_;  // by type
  DueTasks* first_ = nullptr;
  bool ended_ = false;
  rules::Rank rank_;           // of the task below
  std::optional<Row> loaded_;  // the first of all types, if it may go
};

Claim::Claim(Connection& db)
    : next_priority_(db,
                     "SELECT priority FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0"
                     " AND queue_no = ? AND type = ? AND priority < ? ORDER BY priority DESC LIMIT 1"),
      due_(db,
           "SELECT run_at, id, seq FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0"
           " AND queue_no = ? AND type = ? AND priority = ? AND run_at <= ? AND (run_at, id) > (?, ?)"
           " ORDER BY run_at, id LIMIT ?"),
      next_run_at_(db,
                   "SELECT run_at FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0"
                   " AND queue_no = ? AND type = ? AND priority = ? AND run_at > ? ORDER BY run_at LIMIT 1"),
      next_type_(db,
                 "SELECT type FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0"
                 " AND queue_no = ? AND type > ? ORDER BY type LIMIT 1"),
      claimed_(db,
               "SELECT seq FROM hapax_executions INDEXED BY hapax_claims"
               " WHERE status = 1 AND lease_secret >= x'80' AND lease_secret = ?"),
      rate_(db, "SELECT full_at_ns, count, per_ms, burst FROM hapax_rates WHERE queue_no = ?"),
      put_rate_(
          db,
          "INSERT OR REPLACE INTO hapax_rates (queue_no, full_at_ns, count, per_ms, burst) VALUES (?, ?, ?, ?, ?)") {}

// One seek for each.
std::vector<std::string> Claim::types_in(std::int64_t queue_no) {
  std::vector<std::string> types;
  for (std::string type;;) {
    Run run(next_type_);
    if (!run.bind(queue_no).bind(type).next()) return types;
    type = run.text(0);
    types.push_back(type);
  }
}

RateState Claim::load_rate(std::int64_t queue_no) {
  Run run(rate_);
  if (!run.bind(queue_no).next()) return {};
  return {run.int64(0), {.count = run.int64(1), .per = Duration(run.int64(2)), .burst = run.int64(3)}};
}

void Claim::save_rate(std::int64_t queue_no, const RateState& rate) {
  const auto& [count, per, burst] = rate.rate;
  Run(put_rate_).bind(queue_no).bind(rate.full_at_ns).bind(count).bind(per.count()).bind(burst).done();
}

void Claim::take_back(Batch& batch, const ReturnedPermits& permits) {
  const auto queue_no = batch.tables.find_queue(permits.name_space, permits.queue, Kind::task);
  if (!queue_no) return;
  RateState rate = load_rate(*queue_no);
  const QueuePolicy& policy = batch.policies.of(permits.name_space, permits.queue);
  return_permits(*policy.rate_limit, rate, batch.now, permits.count);
  save_rate(*queue_no, rate);
}

// What the same claim was handed before.
ClaimOutcome Claim::handed_before(Batch& batch, const ClaimRequest& request) {
  std::vector<std::int64_t> claimed;
  {
    Run run(claimed_);
    run.bind(request.secret);
    while (run.next()) claimed.push_back(run.int64(0));
  }
  std::vector<Row> rows;
  for (const std::int64_t seq : claimed) {
    std::optional<Row> row = batch.tables.load_all(seq);
    if (!row->execution.damaged && rules::was_handed(request, row->execution, batch.now))
      rows.push_back(*std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return goes_before(a.execution, b.execution); });
  ClaimOutcome outcome;
  outcome.more = !rows.empty();
  PageBudget budget;
  for (Row& row : rows) {
    if (row.execution.kind == Kind::workflow) {
      auto news = batch.tables.runs().events(row.seq, row.execution.run.seen, kAllEvents, budget);
      if (any_damaged(news)) continue;
      outcome.events.push_back(std::move(news));
    }
    outcome.executions.push_back(std::move(row.execution));
  }
  return outcome;
}

ClaimOutcome Claim::operator()(Batch& batch, const ClaimRequest& request) {
  if (request.repeatable) {
    ClaimOutcome before = handed_before(batch, request);
    if (!before.executions.empty() || request.limit <= 0) return before;
  }
  const std::int64_t limit = std::max(request.limit, 0);
  const std::int64_t chunk = request.queues.size() == 1 && !(request.tasks && request.workflows)
                                 ? std::max<std::int64_t>(limit, 1)
                                 : std::min(kChunk, limit + 1);
  std::deque<QueueScan> turns;
  std::vector<QueueScan*> queues;
  for (const std::string& queue : request.queues) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!(kind == Kind::task ? request.tasks : request.workflows)) continue;
      const QueuePolicy* policy = rules::limits_of(batch.policies, request.name_space, queue, kind);
      const auto queue_no = policy ? batch.tables.find_queue(request.name_space, queue, kind) : std::nullopt;
      if (queue_no) queues.push_back(&turns.emplace_back(*this, batch, *queue_no, request.types, *policy, chunk));
    }
  }

  ClaimOutcome outcome;
  PageBudget budget;
  while (std::ssize(outcome.executions) < limit) {
    QueueScan* first = rules::first_of(queues);
    if (!first) break;
    PageBudget with_next = budget;
    outcome.more = !with_next.take(first->payload_bytes());
    if (outcome.more) break;
    Row row = first->take_next();
    if (row.execution.kind == Kind::workflow) {
      auto news = batch.tables.runs().events(row.seq, row.execution.run.seen, kAllEvents, with_next);
      if (any_damaged(news)) continue;
      outcome.events.push_back(std::move(news));
    }
    budget = with_next;
    start_attempt(row.execution, request.worker, request.secret, request.lease, batch.now);
    batch.tables.save(row, row.execution.failed_attempts.size());
    outcome.executions.push_back(std::move(row.execution));
  }

  const bool fewer = std::ssize(outcome.executions) < limit;
  for (QueueScan& turn : turns) {
    turn.save_rate();
    if (fewer) keep_earliest(outcome.next_at, turn.next_at());
  }
  return outcome;
}

std::set<ExecutionId> hand_out(Batch& batch, WaitingClaims& waiters, const std::set<ExecutionId>& ready) {
  std::map<ExecutionId, Row> rows;
  std::vector<Execution*> candidates;
  for (const ExecutionId& id : ready) {
    auto row = batch.tables.load_all(id);
    if (row) candidates.push_back(&rows.emplace(id, *std::move(row)).first->second.execution);
  }
  auto handed = hapax::hand_out(waiters, candidates, batch.policies, batch.now, [&](const Execution& started) {
    Row& row = rows.at(started.id);
    batch.tables.save(row, row.execution.failed_attempts.size());
    const bool is_workflow = started.kind == Kind::workflow;
    PageBudget budget;
    return is_workflow ? batch.tables.runs().events(row.seq, started.run.seen, kAllEvents, budget)
                       : std::vector<Event>();
  });
  for (ClaimOutcome& outcome : waiters.outcomes) drop_damaged(outcome);
  return handed;
}

}  // namespace hapax::sqlite
