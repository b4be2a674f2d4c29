// Listing and counting, within a namespace.
#include "store/memory/verbs.h"

namespace hapax::memory {

namespace {

bool matches(const Execution& execution, const ListFilter& filter) {
  return execution.name_space == filter.name_space && execution.kind == filter.kind &&
         (!filter.queue || execution.queue == *filter.queue) && (!filter.type || execution.type == *filter.type) &&
         (!filter.idempotency_key || execution.idempotency_key == filter.idempotency_key) &&
         (!filter.status || execution.status == *filter.status) &&
         (!filter.parent || execution.parent == filter.parent);
}

}  // namespace

Page list(const Tables& tables, const ListFilter& filter) {
  PageFiller page(filter.limit);
  const std::set<ExecutionId>& ids = tables.ids_in(filter.name_space, filter.kind);
  auto last = filter.before ? ids.lower_bound(*filter.before) : ids.end();
  while (last != ids.begin()) {
    const Execution& execution = *tables.find(*--last);
    if (matches(execution, filter) && !page.add(execution)) break;
  }
  return page.take();
}

std::vector<QueueCount> count(const Tables& tables, const std::optional<std::string>& name_space) {
  std::vector<QueueCount> counts;
  const auto& open = tables.open();
  for (auto queue = open.lower_bound({name_space.value_or(""), "", Kind::task}); queue != open.end(); ++queue) {
    const auto& [name, tasks] = *queue;
    if (name_space && name.name_space != *name_space) break;
    if (counts.empty() || counts.back().name_space != name.name_space || counts.back().queue != name.queue) {
      counts.push_back({name.name_space, name.queue, 0, 0, std::nullopt});
    }
    QueueCount& count = counts.back();
    count.running += tasks.running;
    for (const auto& [priority, level] : tasks.pending) {
      count.pending += std::ssize(level);
      const Time first = level.begin()->first;
      if (!count.oldest_run_at || first < *count.oldest_run_at) count.oldest_run_at = first;
    }
  }
  return counts;
}

}  // namespace hapax::memory
