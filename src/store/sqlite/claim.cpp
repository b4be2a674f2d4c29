// Claiming walks the ready index of each queue from its highest priority down, one seek per priority: a task that
// waits for its time hides none of those behind it, and what is closed is never looked at.

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "core/rate.h"
#include "core/transition.h"
#include "store/rules/hand_out.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

constexpr std::int64_t kChunk = 64;  // candidates read ahead, where there are several queues

void keep_earliest(std::optional<Time>& earliest, Time time) {
  if (!earliest || time < *earliest) earliest = time;
}

const QueuePolicy kUnlimited;  // a turn is no task: the limits are of those

constexpr std::int64_t kAboveAllPriorities = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;

}  // namespace

bool Candidate::goes_before(const Candidate& other) const {
  return std::tie(other.priority, run_at, id) < std::tie(priority, other.run_at, other.id);
}

// One queue during a claim: its due tasks in order, and what its limits still let through.
class QueueTurn {
 public:
  QueueTurn(Claim& claim, Batch& batch, std::int64_t queue_no, const QueuePolicy& policy, std::int64_t chunk)
      : claim_(claim), batch_(batch), queue_no_(queue_no), policy_(policy), chunk_(chunk) {
    if (policy.max_running) running_ = batch.tables.count_running(queue_no);
    if (policy.rate_limit) rate_ = claim.load_rate(queue_no);
  }

  // The first due task that the limits let through, or null.
  const Candidate* next() {
    while (!loaded_) {
      const Candidate* candidate = head();
      if (!candidate) return nullptr;
      if (policy_.max_running && running_ >= *policy_.max_running) return end();
      loaded_ = batch_.tables.load_all(candidate->seq);
      const auto& deadline = loaded_->execution.deadline_at;
      const bool is_over = deadline && *deadline <= batch_.now;  // the next sweep times it out
      if (is_over || loaded_->execution.damaged) {
        loaded_.reset();
        ++position_;
      } else if (is_saturated(loaded_->execution)) {
        batch_.tables.park(loaded_->seq);
        loaded_.reset();
        ++position_;
      } else if (is_out_of_rate()) {
        return end();
      }
    }
    return &candidates_[position_];
  }

  // Of the task that next() gave.
  std::int64_t payload_bytes() const { return loaded_->execution.payload_bytes(); }

  // The task that next() gave, which counts as handed out.
  Row take_next() {
    Row row = *std::exchange(loaded_, std::nullopt);
    ++position_;
    ++running_;
    if (policy_.rate_limit) {
      take(*policy_.rate_limit, rate_, batch_.now, 1);
      rate_changed_ = true;
    }
    return row;
  }

  void save_rate() {
    if (rate_changed_) claim_.save_rate(queue_no_, rate_);
  }

  // When the clock alone may let another task through.
  std::optional<Time> next_at() {
    std::optional<Time> earliest;
    std::optional<std::int64_t> priority = kAboveAllPriorities;
    while ((priority = priority_below(*priority))) {
      Run run(claim_.next_run_at_);
      if (run.bind(queue_no_).bind(*priority).bind(batch_.now).next()) keep_earliest(earliest, run.time(0));
    }
    if (held_by_rate_) keep_earliest(earliest, next_permit(*policy_.rate_limit, rate_, batch_.now));
    return earliest;
  }

 private:
  const Candidate* end() {
    ended_ = true;
    loaded_.reset();
    return nullptr;
  }

  std::optional<std::int64_t> priority_below(std::int64_t priority) {
    Run run(claim_.next_priority_);
    if (!run.bind(queue_no_).bind(priority).next()) return std::nullopt;
    return run.int64(0);
  }

  const Candidate* head() {
    while (!ended_ && position_ == candidates_.size()) read_on();
    return ended_ ? nullptr : &candidates_[position_];
  }

  // The next chunk of this priority's due tasks, or those of the next priority.
  void read_on() {
    if (level_done_) {
      const auto priority = priority_below(priority_);
      if (!priority) {
        end();
        return;
      }
      priority_ = *priority;
      after_ = {};
      after_.run_at = from_ms(std::numeric_limits<std::int64_t>::min());
    }
    candidates_.clear();
    position_ = 0;
    Run run(claim_.due_);
    run.bind(queue_no_).bind(priority_).bind(batch_.now).bind(after_.run_at).bind(after_.id).bind(chunk_);
    while (run.next()) {
      candidates_.push_back(
          {static_cast<std::int32_t>(priority_), run.time(0), run.bytes<ExecutionId>(1), run.int64(2)});
    }
    level_done_ = std::ssize(candidates_) < chunk_;
    if (!candidates_.empty()) after_ = candidates_.back();
  }

  bool is_saturated(const Execution& task) {
    return task.concurrency_key &&
           batch_.tables.count_running(queue_no_, *task.concurrency_key) >= policy_.concurrency_limit;
  }

  bool is_out_of_rate() {
    if (!policy_.rate_limit) return false;
    RateState trial = rate_;
    held_by_rate_ = take(*policy_.rate_limit, trial, batch_.now, 1) == 0;
    if (held_by_rate_ && trial != rate_) {  // under a changed limit
      rate_ = trial;
      rate_changed_ = true;
    }
    return held_by_rate_;
  }

  Claim& claim_;
  Batch& batch_;
  std::int64_t queue_no_;
  const QueuePolicy& policy_;
  std::int64_t chunk_;
  std::int64_t running_ = 0;
  RateState rate_;
  bool rate_changed_ = false, held_by_rate_ = false;

  std::int64_t priority_ = kAboveAllPriorities;
  bool level_done_ = true, ended_ = false;
  Candidate after_;
  std::vector<Candidate> candidates_;
  std::size_t position_ = 0;
  std::optional<Row> loaded_;  // the candidate at position_, if next() found that it may go
};

Claim::Claim(Connection& db)
    : next_priority_(db,
                     "SELECT priority FROM executions INDEXED BY ready WHERE status = 0 AND parked = 0"
                     " AND queue_no = ? AND priority < ? ORDER BY priority DESC LIMIT 1"),
      due_(db,
           "SELECT run_at, id, seq FROM executions INDEXED BY ready WHERE status = 0 AND parked = 0"
           " AND queue_no = ? AND priority = ? AND run_at <= ? AND (run_at, id) > (?, ?)"
           " ORDER BY run_at, id LIMIT ?"),
      next_run_at_(db,
                   "SELECT run_at FROM executions INDEXED BY ready WHERE status = 0 AND parked = 0"
                   " AND queue_no = ? AND priority = ? AND run_at > ? ORDER BY run_at LIMIT 1"),
      rate_(db, "SELECT full_at_ns, count, per_ms, burst FROM rates WHERE queue_no = ?"),
      put_rate_(db,
                "INSERT OR REPLACE INTO rates (queue_no, full_at_ns, count, per_ms, burst) VALUES (?, ?, ?, ?, ?)") {}

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

ClaimOutcome Claim::operator()(Batch& batch, const ClaimRequest& request) {
  const std::int64_t limit = std::max(request.limit, 0);
  const std::int64_t chunk = request.queues.size() == 1 && !(request.tasks && request.workflows)
                                 ? std::max<std::int64_t>(limit, 1)
                                 : std::min(kChunk, limit + 1);
  std::vector<QueueTurn> turns;
  turns.reserve(request.queues.size() * 2);
  for (const std::string& queue : request.queues) {
    const QueuePolicy& policy = batch.policies.of(request.name_space, queue);
    if (policy.paused) continue;
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!(kind == Kind::task ? request.tasks : request.workflows)) continue;
      const auto queue_no = batch.tables.find_queue(request.name_space, queue, kind);
      if (queue_no) turns.emplace_back(*this, batch, *queue_no, kind == Kind::task ? policy : kUnlimited, chunk);
    }
  }

  ClaimOutcome outcome;
  PageBudget budget;
  while (std::ssize(outcome.executions) < limit) {
    QueueTurn* first = nullptr;
    for (QueueTurn& turn : turns) {
      const Candidate* candidate = turn.next();
      if (candidate && (!first || candidate->goes_before(*first->next()))) first = &turn;
    }
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
  for (QueueTurn& turn : turns) {
    turn.save_rate();
    const auto next_at = fewer ? turn.next_at() : std::nullopt;
    if (next_at) keep_earliest(outcome.next_at, *next_at);
  }
  return outcome;
}

std::set<ExecutionId> hand_out(Batch& batch, Waiters& waiters, const std::set<ExecutionId>& ready) {
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
