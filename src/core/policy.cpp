#include "core/policy.h"

namespace hapax {

void QueuePolicies::set(std::string name_space, std::string queue, QueuePolicy policy) {
  queues_.insert_or_assign(Key{std::move(name_space), std::move(queue)}, std::move(policy));
}

const QueuePolicy& QueuePolicies::of(std::string_view name_space, std::string_view queue) const {
  const auto found = queues_.find(Less::View{name_space, queue});
  return found == queues_.end() ? defaults_ : found->second;
}

Duration QueuePolicies::retention(std::string_view name_space, std::string_view queue, Kind kind) const {
  return of(name_space, queue).retention.value_or(kind == Kind::task ? task_retention : workflow_retention);
}

}  // namespace hapax
