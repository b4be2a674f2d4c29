#include "model/oracle/world.h"

#include <algorithm>

namespace hapax::oracle {

void keep_earliest(std::optional<Time>& earliest, const std::optional<Time>& time) {
  if (time && (!earliest || *time < *earliest)) earliest = time;
}

Changed changed(const Execution& execution) {
  return {execution.id, execution.name_space, execution.queue, execution.kind, execution.type};
}

Execution* World::find(const ExecutionId& id) {
  const auto found = executions.find(id);
  return found == executions.end() ? nullptr : &found->second;
}

const QueuePolicy& World::policy(const std::string& name_space, const std::string& queue) {
  static const QueuePolicy kDefault;
  const auto found = policies.find({name_space, queue});
  return found == policies.end() ? kDefault : found->second;
}

// Spec 3: tasks 7 days, workflows 30 days.
Duration World::retention(const std::string& name_space, const std::string& queue, Kind kind) {
  const Duration otherwise = kind == Kind::task ? std::chrono::days(7) : std::chrono::days(30);
  return policy(name_space, queue).retention.value_or(otherwise);
}

std::optional<Time> World::due_at(const Execution& execution) {
  std::optional<Time> due;
  if (execution.kind == Kind::workflow && !is_closed(execution.status)) keep_earliest(due, execution.cancel_by);
  switch (execution.status) {
    case Status::pending: keep_earliest(due, execution.deadline_at); return due;
    case Status::running:
      keep_earliest(due, execution.deadline_at);
      keep_earliest(due, execution.lease_expires_at);
      keep_earliest(due, execution.attempt_ends_by);
      keep_earliest(due, execution.cancel_by);
      return due;
    case Status::suspended:
      keep_earliest(due, execution.deadline_at);
      keep_earliest(due, execution.run.wake_at);
      return due;
    default: return std::nullopt;
  }
}

std::vector<Event> World::events_after(const ExecutionId& run, std::int64_t after) {
  std::vector<Event> events;
  for (const Event& event : histories[run]) {
    if (event.no > after) events.push_back(event);
  }
  return events;
}

std::vector<ExecutionId> World::steps_of(const ExecutionId& run) {
  std::vector<ExecutionId> ids;
  for (const auto& [id, execution] : executions) {
    if (execution.parent == run) ids.push_back(id);
  }
  return ids;
}

}  // namespace hapax::oracle
