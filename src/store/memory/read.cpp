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

void add_open(QueueCount& count, const OpenTasks& tasks) {
  count.running += tasks.running;
  for (const auto& [type, levels] : tasks.pending) {
    for (const auto& [priority, level] : levels) {
      count.pending += std::ssize(level);
      const Time first = level.begin()->first;
      if (!count.oldest_run_at || first < *count.oldest_run_at) count.oldest_run_at = first;
    }
  }
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
  const auto& queues = tables.queues();
  for (auto queue = queues.lower_bound({name_space.value_or(""), ""}); queue != queues.end(); ++queue) {
    const auto& [in, name] = *queue;
    if (name_space && in != *name_space) break;
    QueueCount& count = counts.emplace_back(QueueCount{in, name, 0, 0, std::nullopt});
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      const auto open = tables.open().find({in, name, kind});
      if (open != tables.open().end()) add_open(count, open->second);
    }
  }
  return counts;
}

}  // namespace hapax::memory
