#include "store/rules/why.h"

#include <algorithm>

#include "store/memory/verbs.h"

namespace hapax::memory {

namespace {

class MemoryWhy final : public rules::WhyRows {
 public:
  MemoryWhy(Tables& tables, Time now) : tables_(tables), now_(now) {}

  Time now() override { return now_; }
  const QueuePolicies& policies() override { return *tables_.policies; }
  std::optional<Execution> find(const ExecutionId& id) override {
    const Execution* execution = tables_.find(id);
    return execution ? std::optional(*execution) : std::nullopt;
  }

  std::int64_t count_before(const Execution& pending) override {
    const auto open = tables_.open().find(queue_of(pending));
    std::int64_t count = 0;
    if (open == tables_.open().end()) return count;
    for (const auto& [type, levels] : open->second.pending) {
      for (const auto& [priority, level] : levels) {
        if (priority < pending.priority || count >= kMostCounted) break;
        for (const auto& [run_at, id] : level) {
          const bool is_first =
              priority > pending.priority || std::pair(run_at, id) < std::pair(pending.run_at, pending.id);
          if (run_at > now_ || !is_first || ++count == kMostCounted) break;
        }
      }
    }
    return count;
  }
  std::int64_t count_running(const Execution& pending) override {
    const auto open = tables_.open().find(queue_of(pending));
    return open == tables_.open().end() ? 0 : open->second.running;
  }
  std::vector<ExecutionId> running_with_key(const Execution& pending, std::int32_t limit) override {
    std::vector<ExecutionId> holders;
    for (const auto& [due, id] : tables_.due()) {  // what runs has a lease that ends
      const Execution& each = *tables_.find(id);
      const bool holds = each.status == Status::running && queue_of(each) == queue_of(pending) &&
                         each.concurrency_key == pending.concurrency_key;
      if (holds) holders.push_back(id);
      if (std::ssize(holders) == limit) break;
    }
    return holders;
  }
  RateState rate(const Execution& pending) override {
    const auto rate = tables_.rates.find(queue_of(pending));
    return rate == tables_.rates.end() ? RateState{} : rate->second;
  }
  std::int64_t count_closed_since(const Execution& pending, Time since) override {
    const auto closed = tables_.closed().find({pending.name_space, pending.queue, pending.kind});
    if (closed == tables_.closed().end()) return 0;
    std::int64_t count = 0;
    for (auto each = closed->second.upper_bound({since, ExecutionId()}); each != closed->second.end(); ++each) {
      if (++count == kMostCounted) break;
    }
    return count;
  }

  std::optional<std::vector<WorkerInfo>> claimers(const Execution& pending, Time since, std::int32_t limit) override {
    return memory::claimers(tables_, pending, since, limit);
  }

  std::vector<Wait> waits_of(const ExecutionId& run) override {
    std::vector<Wait> waits;
    for (auto wait = tables_.waits.lower_bound({run, 0}); wait != tables_.waits.end() && wait->first.first == run;
         ++wait) {
      waits.push_back(wait->second);
    }
    return waits;
  }
  std::vector<ExecutionId> open_steps_of(const ExecutionId& run, std::int32_t limit) override {
    std::vector<ExecutionId> open;
    const auto [begin, end] = tables_.steps().equal_range(run);
    for (auto step = begin; step != end && std::ssize(open) < limit; ++step) {
      if (!is_closed(tables_.find(step->second)->status)) open.push_back(step->second);
    }
    return open;
  }

 private:
  static QueueName queue_of(const Execution& execution) {
    return {execution.name_space, execution.queue, execution.kind};
  }

  Tables& tables_;
  const Time now_;
};

}  // namespace

std::optional<Why> why(Tables& tables, const std::string& name_space, const ExecutionId& id, Time now) {
  MemoryWhy rows(tables, now);
  return rules::why(rows, name_space, id);
}

}  // namespace hapax::memory
