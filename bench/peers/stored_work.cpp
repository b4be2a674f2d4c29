#include "stored_work.h"

#include "open/open_engine.h"

namespace hapax::bench {

StoredWork::StoredWork(const std::string& url) : engine_(open_engine(url).engine) {}

std::int64_t StoredWork::open() {
  std::int64_t open = 0;
  for (const QueueCount& queue : engine_->queue_counts()) open += queue.pending + queue.running;
  return open;
}

std::int64_t StoredWork::total() {
  return count([](const Execution&) { return true; });
}

std::int64_t StoredWork::completed_with_result() {
  return count([](const Execution& execution) {
    return execution.status == Status::completed && execution.attempt == 1 && execution.result.has_value();
  });
}

std::int64_t StoredWork::count(bool (*wanted)(const Execution&)) {
  ListFilter filter;
  filter.name_space = "default";
  filter.limit = 1000;
  std::int64_t found = 0;
  for (;;) {
    const Page page = engine_->list(filter);
    for (const Execution& execution : page) found += wanted(execution) ? 1 : 0;
    if (!page.next) return found;
    filter.before = page.next;
  }
}

}  // namespace hapax::bench
