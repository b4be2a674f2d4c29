#include "core/policy.h"

#include <algorithm>

namespace hapax {

void QueuePolicies::set(std::string name_space, std::string queue, QueuePolicy policy) {
  queues_.insert_or_assign(Key{std::move(name_space), std::move(queue)}, std::move(policy));
}

void QueuePolicies::set_everywhere(std::string queue, QueuePolicy policy) {
  everywhere_.insert_or_assign(std::move(queue), std::move(policy));
}

const QueuePolicy& QueuePolicies::of(std::string_view name_space, std::string_view queue) const {
  if (const auto own = queues_.find(Less::View{name_space, queue}); own != queues_.end()) return own->second;
  const auto found = everywhere_.find(queue);
  return found == everywhere_.end() ? defaults_ : found->second;
}

Duration QueuePolicies::retention(std::string_view name_space, std::string_view queue, Kind kind) const {
  return of(name_space, queue).retention.value_or(kind == Kind::task ? task_retention : workflow_retention);
}

bool QueuePolicies::any_deleted_at_once() const {
  const auto deletes = [](const auto& entry) { return entry.second.retention == Duration::zero(); };
  return task_retention == Duration::zero() || workflow_retention == Duration::zero() ||
         std::any_of(queues_.begin(), queues_.end(), deletes) ||
         std::any_of(everywhere_.begin(), everywhere_.end(), deletes);
}

}  // namespace hapax
