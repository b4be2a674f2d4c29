#include "store/rules/why.h"

#include <algorithm>

#include "core/settings.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

// Each look names its index and its limit: what it costs does not depend on what else is stored.
class SqliteWhy final : public rules::WhyRows {
 public:
  SqliteWhy(Tables& tables, const QueuePolicies& policies, Time now)
      : tables_(tables), policies_(policies), now_(now) {}

  Time now() override { return now_; }
  const QueuePolicies& policies() override { return policies_; }
  std::optional<Execution> find(const ExecutionId& id) override {
    auto row = tables_.load_all(id);
    return row ? std::optional(std::move(row->execution)) : std::nullopt;
  }

  // Type by type and level by level: within one, what is due comes first.
  std::int64_t count_before(const Execution& pending) override {
    Statement next_level(
        tables_.connection(),
        "SELECT max(priority) FROM hapax_executions INDEXED BY hapax_ready"
        " WHERE status = 0 AND parked = 0 AND queue_no = ? AND type = ? AND priority < ? AND priority > ?");
    Statement next_type(tables_.connection(),
                        "SELECT min(type) FROM hapax_executions INDEXED BY hapax_ready"
                        " WHERE status = 0 AND parked = 0 AND queue_no = ? AND type > ?");
    Statement due(tables_.connection(),
                  "SELECT count(*) FROM (SELECT 1 FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0"
                  " AND parked = 0 AND queue_no = ? AND type = ? AND priority = ? AND (run_at, id) < (?, ?) LIMIT ?)");
    const std::int64_t queue = queue_no(pending);
    std::string type;
    const auto count = [&](std::int32_t priority, Time run_at, const ExecutionId& id) {
      Run run(due);
      run.bind(queue).bind(type).bind(priority).bind(run_at).bind(id).bind(kMostCounted).next();
      return run.int64(0);
    };
    const auto next = [&] {
      Run run(next_type);
      if (!run.bind(queue).bind(type).next() || run.is_null(0)) return false;
      type = run.text(0);
      return true;
    };
    std::int64_t before = 0;
    while (before < kMostCounted && next()) {
      before += count(pending.priority, pending.run_at, pending.id);
      for (std::int32_t level = kMaxPriority + 1; before < kMostCounted;) {
        Run run(next_level);
        run.bind(queue).bind(type).bind(level).bind(pending.priority);
        if (!run.next() || run.is_null(0)) break;
        level = run.int32(0);
        before += count(level, now_ + Duration(1), ExecutionId());
      }
    }
    return std::min<std::int64_t>(before, kMostCounted);
  }
  std::int64_t count_running(const Execution& pending) override { return tables_.count_running(queue_no(pending)); }
  std::vector<ExecutionId> running_with_key(const Execution& pending, std::int32_t limit) override {
    Statement statement(tables_.connection(),
                        "SELECT id FROM hapax_executions INDEXED BY hapax_running"
                        " WHERE status = 1 AND queue_no = ? AND concurrency_key = ? LIMIT ?");
    Run run(statement);
    run.bind(queue_no(pending)).bind(*pending.concurrency_key).bind(limit);
    return ids_in(run);
  }
  RateState rate(const Execution& pending) override {
    Statement statement(tables_.connection(),
                        "SELECT full_at_ns, count, per_ms, burst FROM hapax_rates WHERE queue_no = ?");
    Run run(statement);
    if (!run.bind(queue_no(pending)).next()) return {};
    return {run.int64(0), {run.int64(1), Duration(run.int64(2)), run.int64(3)}};
  }
  std::int64_t count_closed_since(const Execution& pending, Time since) override {
    Statement statement(tables_.connection(),
                        "SELECT count(*) FROM (SELECT 1 FROM hapax_executions INDEXED BY hapax_closed"
                        " WHERE queue_no = ? AND kind = ? AND finished_at > ? LIMIT ?)");
    Run run(statement);
    run.bind(queue_no(pending)).bind(pending.kind).bind(since).bind(kMostCounted).next();
    return run.int64(0);
  }

  std::optional<std::vector<WorkerInfo>> claimers(const Execution& pending, Time since, std::int32_t limit) override {
    return sqlite::claimers(tables_, pending, since, limit);
  }

  std::vector<Wait> waits_of(const ExecutionId& run) override {
    const auto row = tables_.load_state(run);
    return row ? tables_.runs().waits_of(row->seq) : std::vector<Wait>();
  }
  std::vector<ExecutionId> open_steps_of(const ExecutionId& run_id, std::int32_t limit) override {
    Statement statement(tables_.connection(),
                        "SELECT id FROM (SELECT id, finished_at FROM hapax_executions INDEXED BY hapax_steps"
                        " WHERE parent = ? ORDER BY seq DESC LIMIT ?) WHERE finished_at IS NULL ORDER BY id LIMIT ?");
    Run run(statement);
    run.bind(run_id).bind(kMostCounted).bind(limit);
    return ids_in(run);
  }

 private:
  static std::vector<ExecutionId> ids_in(Run& run) {
    std::vector<ExecutionId> ids;
    while (run.next()) ids.push_back(run.bytes<ExecutionId>(0));
    return ids;
  }
  std::int64_t queue_no(const Execution& execution) {
    return tables_.find_queue(execution.name_space, execution.queue, execution.kind).value_or(0);
  }

  Tables& tables_;
  const QueuePolicies& policies_;
  const Time now_;
};

}  // namespace

std::optional<Why> why(Tables& tables, const QueuePolicies& policies, const std::string& name_space,
                       const ExecutionId& id, Time now) {
  SqliteWhy rows(tables, policies, now);
  return rules::why(rows, name_space, id);
}

}  // namespace hapax::sqlite
