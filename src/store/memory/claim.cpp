#include <algorithm>
#include <deque>
#include <limits>

#include "core/transition.h"
#include "store/memory/verbs.h"
#include "store/rules/hand_out.h"

namespace hapax::memory {
namespace {

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

// What is due of one type in a queue, in order.
class DueTasks {
 public:
  DueTasks(const Levels& levels, Time now) : levels_(levels), now_(now), level_(levels.begin()) { enter_level(); }

  const ExecutionId* head() const { return ended_ ? nullptr : &task_->second; }
  void skip() {
    ++task_;
    leave_level_at_end();
  }

  // When the clock alone makes another one due.
  std::optional<Time> next_at() const {
    std::optional<Time> earliest;
    for (const auto& [priority, level] : levels_) {
      const auto future = level.lower_bound({now_ + Duration(1), ExecutionId{}});
      if (future != level.end()) keep_earliest(earliest, future->first);
    }
    return earliest;
  }

 private:
  void enter_level() {
    ended_ = level_ == levels_.end();
    if (ended_) return;
    task_ = level_->second.begin();
    leave_level_at_end();
  }

  // What is left of a level once its due tasks are passed is not due.
  void leave_level_at_end() {
    if (task_ != level_->second.end() && task_->first <= now_) return;
    ++level_;
    enter_level();
  }

  const Levels& levels_;
  Time now_;
  Levels::const_iterator level_;
  TimeOrder::const_iterator task_;
  bool ended_ = true;
};

// One queue during a claim: its due tasks of the types that are asked for, in order, and what its limits still let
// through.
class QueueScan final : public rules::RunningCounts {
 public:
  QueueScan(Tables& tables, const QueueName& name, const std::vector<std::string>& types, const QueuePolicy& policy,
            Time now)
      : tables_(tables), name_(name), now_(now), limits_(policy, *this, now) {
    const auto open = tables.open().find(name);
    if (open == tables.open().end()) return;
    tasks_ = &open->second;
    if (policy.rate_limit) limits_.set_rate(tables.rates[name]);
    if (types.empty()) {
      for (const auto& [type, levels] : tasks_->pending) due_.emplace_back(levels, now);
    }
    for (const std::string& type : types) {
      const auto levels = tasks_->pending.find(type);
      if (levels != tasks_->pending.end()) due_.emplace_back(levels->second, now);
    }
  }

  // The first due task that the limits let through, or null.
  const Execution* next() {
    using Verdict = rules::QueueLimits::Verdict;
    while (const Execution* task = head()) {
      const Verdict verdict =
          rules::is_past_deadline(*task, now_) ? Verdict::key_is_full : limits_.judge(task->concurrency_key);
      if (verdict == Verdict::go) return task;
      if (verdict == Verdict::key_is_full) {
        first_->skip();
      } else {
        ended_ = true;
      }
    }
    return nullptr;
  }
  std::optional<rules::Rank> next_rank() {
    const Execution* task = next();
    return task ? std::optional(rules::rank_of(*task)) : std::nullopt;
  }

  // Counts the task that next() gave as handed out.
  void take_next() {
    limits_.take(head()->concurrency_key);
    first_->skip();
  }

  void save_rate() {
    if (limits_.rate_changed()) tables_.rates[name_] = limits_.rate();
  }

  // When the clock alone may let another task through.
  std::optional<Time> next_at() const {
    std::optional<Time> earliest = limits_.next_permit();
    for (const DueTasks& due : due_) keep_earliest(earliest, due.next_at());
    return earliest;
  }

 private:
  std::int64_t running() override { return tasks_->running; }
  std::int64_t running_with(const std::string& key) override {
    const auto stored = tasks_->running_by_key.find(key);
    return stored == tasks_->running_by_key.end() ? 0 : stored->second;
  }

  // The first of all types, which is at the head of first_.
  const Execution* head() {
    const Execution* first = nullptr;
    if (ended_) return first;
    for (DueTasks& due : due_) {
      const ExecutionId* id = due.head();
      const Execution* task = id ? tables_.find(*id) : nullptr;
      if (!task || (first && !goes_before(*task, *first))) continue;
      first = task;
      first_ = &due;
    }
    return first;
  }

  Tables& tables_;
  QueueName name_;
  Time now_;
  const OpenTasks* tasks_ = nullptr;
  std::deque<DueTasks> due_;  // by type
  DueTasks* first_ = nullptr;
  bool ended_ = false;
  rules::QueueLimits limits_;
};

}  // namespace

namespace {

// What the same claim was handed before.
ClaimOutcome handed_before(const Tables& tables, const ClaimRequest& request, Time now) {
  ClaimOutcome outcome;
  for (const ExecutionId& id : tables.claimed_under(request.secret)) {
    const Execution& execution = *tables.find(id);
    if (rules::was_handed(request, execution, now)) outcome.executions.push_back(execution);
  }
  std::sort(outcome.executions.begin(), outcome.executions.end(), goes_before);
  outcome.more = !outcome.executions.empty();
  PageBudget budget;
  for (const Execution& execution : outcome.executions) {
    if (execution.kind != Kind::workflow) continue;
    outcome.events.push_back(events_after(tables, execution.id, execution.run.seen, kAllEvents, budget));
  }
  return outcome;
}

}  // namespace

ClaimOutcome claim(Tables& tables, const ClaimRequest& request, Time now) {
  if (request.repeatable) {
    ClaimOutcome before = handed_before(tables, request, now);
    if (!before.executions.empty() || request.limit <= 0) return before;
  }
  std::deque<QueueScan> turns;
  std::vector<QueueScan*> queues;
  for (const std::string& queue : request.queues) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!(kind == Kind::task ? request.tasks : request.workflows)) continue;
      const QueuePolicy* policy = rules::limits_of(*tables.policies, request.name_space, queue, kind);
      if (!policy) continue;
      queues.push_back(
          &turns.emplace_back(tables, QueueName{request.name_space, queue, kind}, request.types, *policy, now));
    }
  }

  const auto limit = static_cast<std::size_t>(std::max(request.limit, 0));
  ClaimOutcome outcome;
  PageBudget budget;
  std::vector<ExecutionId> taken;
  while (taken.size() < limit) {
    QueueScan* first = rules::first_of(queues);
    if (!first) break;
    outcome.more = !budget.take(first->next()->payload_bytes());
    if (outcome.more) break;
    taken.push_back(first->next()->id);
    first->take_next();
  }

  for (QueueScan& turn : turns) {
    turn.save_rate();
    if (taken.size() < limit) keep_earliest(outcome.next_at, turn.next_at());
  }
  for (const ExecutionId& id : taken) {
    tables.change(id,
                  [&](Execution& task) { start_attempt(task, request.worker, request.secret, request.lease, now); });
    const Execution& taken_one = *tables.find(id);
    if (taken_one.kind == Kind::workflow) {
      outcome.events.push_back(events_after(tables, id, taken_one.run.seen, kAllEvents, budget));
    }
    outcome.executions.push_back(taken_one);
  }
  return outcome;
}

std::set<ExecutionId> hand_out(Tables& tables, WaitingClaims& waiters, const std::set<ExecutionId>& ready, Time now) {
  std::vector<Execution> found;
  for (const ExecutionId& id : ready) {
    if (const Execution* execution = tables.find(id)) found.push_back(*execution);
  }
  std::vector<Execution*> candidates;
  for (Execution& each : found) candidates.push_back(&each);
  return hapax::hand_out(waiters, candidates, *tables.policies, now, [&](const Execution& started) {
    tables.change(started.id, [&](Execution& stored) { stored = started; });
    PageBudget budget;
    return events_after(tables, started.id, started.run.seen, kAllEvents, budget);
  });
}

}  // namespace hapax::memory
