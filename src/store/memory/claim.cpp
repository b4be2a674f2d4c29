#include <algorithm>
#include <limits>

#include "core/rate.h"
#include "core/transition.h"
#include "store/memory/verbs.h"
#include "store/rules/hand_out.h"

namespace hapax::memory {
namespace {

void keep_earliest(std::optional<Time>& earliest, Time time) {
  if (!earliest || time < *earliest) earliest = time;
}

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

const QueuePolicy kUnlimited;  // a turn is no task: the limits are of those

// One queue during a claim: its due tasks in order, and what its limits still let through.
class QueueTurn {
 public:
  QueueTurn(Tables& tables, const QueueName& name, Time now)
      : tables_(tables),
        name_(name),
        policy_(name.kind == Kind::task ? tables.policies->of(name.name_space, name.queue) : kUnlimited),
        now_(now) {
    const auto open = tables.open().find(name);
    if (open == tables.open().end()) return;
    tasks_ = &open->second;
    running_ = tasks_->running;
    level_ = tasks_->pending.begin();
    enter_level();
  }

  // The first due task that the limits let through, or null.
  const Execution* next() {
    while (const Execution* task = head()) {
      if (policy_.max_running && running_ >= *policy_.max_running) return end();
      if (task->deadline_at && *task->deadline_at <= now_) {  // the next sweep times it out
        skip();
        continue;
      }
      if (task->concurrency_key && running_with(*task->concurrency_key) >= policy_.concurrency_limit) {
        skip();
        continue;
      }
      if (out_of_rate()) return end();
      return task;
    }
    return nullptr;
  }

  // Counts the task that next() gave as handed out.
  void take_next() {
    const Execution& task = *head();
    ++running_;
    if (task.concurrency_key) ++taken_by_key_[*task.concurrency_key];
    if (policy_.rate_limit) take(*policy_.rate_limit, tables_.rates[name_], now_, 1);
    skip();
  }

  // When the clock alone may let another task through.
  std::optional<Time> next_at() const {
    std::optional<Time> earliest;
    if (!tasks_) return earliest;
    for (const auto& [priority, level] : tasks_->pending) {
      const auto future = level.lower_bound({now_ + Duration(1), ExecutionId{}});
      if (future != level.end()) keep_earliest(earliest, future->first);
    }
    if (held_by_rate_) keep_earliest(earliest, next_permit(*policy_.rate_limit, tables_.rates[name_], now_));
    return earliest;
  }

 private:
  const Execution* head() const { return ended_ ? nullptr : tables_.find(task_->second); }

  const Execution* end() {
    ended_ = true;
    return nullptr;
  }

  void skip() {
    ++task_;
    settle();
  }

  void enter_level() {
    ended_ = level_ == tasks_->pending.end();
    if (ended_) return;
    task_ = level_->second.begin();
    settle();
  }

  // What is left of a level once its due tasks are passed is not due.
  void settle() {
    if (task_ != level_->second.end() && task_->first <= now_) return;
    ++level_;
    enter_level();
  }

  std::int64_t running_with(const std::string& key) const {
    const auto stored = tasks_->running_by_key.find(key);
    const auto taken = taken_by_key_.find(key);
    return (stored == tasks_->running_by_key.end() ? 0 : stored->second) +
           (taken == taken_by_key_.end() ? 0 : taken->second);
  }

  bool out_of_rate() {
    if (!policy_.rate_limit) return false;
    RateState& rate = tables_.rates[name_];
    RateState trial = rate;
    held_by_rate_ = take(*policy_.rate_limit, trial, now_, 1) == 0;
    if (held_by_rate_) rate = trial;  // under a changed limit
    return held_by_rate_;
  }

  Tables& tables_;
  QueueName name_;
  const QueuePolicy& policy_;
  Time now_;
  const OpenTasks* tasks_ = nullptr;
  decltype(OpenTasks::pending)::const_iterator level_;
  TimeOrder::const_iterator task_;
  bool ended_ = true;
  bool held_by_rate_ = false;
  std::int64_t running_ = 0;
  std::map<std::string, std::int64_t> taken_by_key_;
};

}  // namespace

ClaimOutcome claim(Tables& tables, const ClaimRequest& request, Time now) {
  std::vector<QueueTurn> turns;
  for (const std::string& queue : request.queues) {
    if (tables.policies->of(request.name_space, queue).paused) continue;
    if (request.tasks) turns.emplace_back(tables, QueueName{request.name_space, queue, Kind::task}, now);
    if (request.workflows) turns.emplace_back(tables, QueueName{request.name_space, queue, Kind::workflow}, now);
  }

  const auto limit = static_cast<std::size_t>(std::max(request.limit, 0));
  ClaimOutcome outcome;
  PageBudget budget;
  std::vector<ExecutionId> taken;
  while (taken.size() < limit) {
    QueueTurn* first = nullptr;
    for (QueueTurn& turn : turns) {
      const Execution* task = turn.next();
      if (task && (!first || goes_before(*task, *first->next()))) first = &turn;
    }
    if (!first) break;
    outcome.more = !budget.take(first->next()->payload_bytes());
    if (outcome.more) break;
    taken.push_back(first->next()->id);
    first->take_next();
  }

  if (taken.size() < limit) {
    for (const QueueTurn& turn : turns) {
      if (const auto next_at = turn.next_at()) keep_earliest(outcome.next_at, *next_at);
    }
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
