#include "core/policy.h"

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

}  // namespace hapax
