#include <algorithm>
#include <deque>
#include <limits>

#include "core/transition.h"
#include "store/memory/verbs.h"
#include "store/rules/hand_out.h"

namespace hapax::memory {
namespace {

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

// One queue during a claim: its due tasks in order, and what its limits still let through.
class QueueTurn final : public rules::RunningCounts {
 public:
  QueueTurn(Tables& tables, const QueueName& name, const QueuePolicy& policy, Time now)
      : tables_(tables), name_(name), now_(now), limits_(policy, *this, now) {
    const auto open = tables.open().find(name);
    if (open == tables.open().end()) return;
    tasks_ = &open->second;
    if (policy.rate_limit) limits_.set_rate(tables.rates[name]);
    level_ = tasks_->pending.begin();
    enter_level();
  }

  // The first due task that the limits let through, or null.
  const Execution* next() {
    using Verdict = rules::QueueLimits::Verdict;
    while (const Execution* task = head()) {
      const Verdict verdict =
          rules::is_past_deadline(*task, now_) ? Verdict::key_is_full : limits_.judge(task->concurrency_key);
      if (verdict == Verdict::go) return task;
      if (verdict != Verdict::key_is_full) ended_ = true;
      if (!ended_) skip();
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
    skip();
  }

  void save_rate() {
    if (limits_.rate_changed()) tables_.rates[name_] = limits_.rate();
  }

  // When the clock alone may let another task through.
  std::optional<Time> next_at() const {
    std::optional<Time> earliest = limits_.next_permit();
    if (!tasks_) return earliest;
    for (const auto& [priority, level] : tasks_->pending) {
      const auto future = level.lower_bound({now_ + Duration(1), ExecutionId{}});
      if (future != level.end()) keep_earliest(earliest, future->first);
    }
    return earliest;
  }

 private:
  std::int64_t running() override { return tasks_->running; }
  std::int64_t running_with(const std::string& key) override {
    const auto stored = tasks_->running_by_key.find(key);
    return stored == tasks_->running_by_key.end() ? 0 : stored->second;
  }

  const Execution* head() const { return ended_ ? nullptr : tables_.find(task_->second); }

  void skip() {
    ++task_;
    leave_level_at_end();
  }

  void enter_level() {
    ended_ = level_ == tasks_->pending.end();
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

  Tables& tables_;
  QueueName name_;
  Time now_;
  const OpenTasks* tasks_ = nullptr;
  decltype(OpenTasks::pending)::const_iterator level_;
  TimeOrder::const_iterator task_;
  bool ended_ = true;
  rules::QueueLimits limits_;
};

}  // namespace

ClaimOutcome claim(Tables& tables, const ClaimRequest& request, Time now) {
  std::deque<QueueTurn> turns;
  std::vector<QueueTurn*> queues;
  for (const std::string& queue : request.queues) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      if (!(kind == Kind::task ? request.tasks : request.workflows)) continue;
      const QueuePolicy* policy = rules::limits_of(*tables.policies, request.name_space, queue, kind);
      if (!policy) continue;
      queues.push_back(&turns.emplace_back(tables, QueueName{request.name_space, queue, kind}, *policy, now));
    }
  }

  const auto limit = static_cast<std::size_t>(std::max(request.limit, 0));
  ClaimOutcome outcome;
  PageBudget budget;
  std::vector<ExecutionId> taken;
  while (taken.size() < limit) {
    QueueTurn* first = rules::first_of(queues);
    if (!first) break;
    outcome.more = !budget.take(first->next()->payload_bytes());
    if (outcome.more) break;
    taken.push_back(first->next()->id);
    first->take_next();
  }

  for (QueueTurn& turn : turns) {
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

std::set<ExecutionId> hand_out(Tables& tables, Waiters& waiters, const std::set<ExecutionId>& ready, Time now) {
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
