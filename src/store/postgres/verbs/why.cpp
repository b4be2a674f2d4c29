#include "store/rules/why.h"

#include <algorithm>

#include "core/settings.h"
#include "store/postgres/tables/run_tables.h"
#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

namespace {

// Each look has an index and a limit: what it costs does not depend on what else is stored.
const Statement kBefore{"why_before",
                        "SELECT count(*) FROM (SELECT FROM open o WHERE o.status = 0 AND NOT o.parked"
                        " AND o.queue_no = $1::int4 AND o.type = $6::bytea AND o.priority = $2::int4"
                        " AND (o.run_at, o.id) < ($3::int8, $4::uuid) LIMIT $5::int8) x"};
const Statement kNextLevel{"why_next_level",
                           "SELECT o.priority FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4"
                           " AND o.type = $4::bytea AND o.priority < $2::int4 AND o.priority > $3::int4"
                           " ORDER BY o.priority DESC LIMIT 1"};
const Statement kNextType{"why_next_type",
                          "SELECT o.type FROM open o WHERE o.status = 0 AND NOT o.parked AND o.queue_no = $1::int4"
                          " AND o.type > $2::bytea ORDER BY o.type LIMIT 1"};
const Statement kRunning{"why_running",
                         "SELECT count(*) FROM (SELECT FROM open o WHERE o.status = 1 AND o.queue_no = $1::int4"
                         " LIMIT $2::int8) x"};
const Statement kHolders{"why_holders",
                         "SELECT o.id FROM open o WHERE o.status = 1 AND o.queue_no = $1::int4"
                         " AND o.concurrency_key = $2::bytea LIMIT $3::int8"};
const Statement kRate{"why_rate",
                      "SELECT full_at_ns, rate_count, rate_per_ms, rate_burst FROM queues WHERE queue_no = $1::int4"};
const Statement kClosedSince{"why_closed_since",
                             "SELECT count(*) FROM (SELECT FROM closed c WHERE c.queue_no = $1::int4"
                             " AND NOT c.has_parent AND c.finished_at > $2::int8 LIMIT $3::int8) x"};
const Statement kOpenSteps{"why_open_steps",
                           "SELECT o.id FROM (SELECT e.id FROM executions e WHERE e.parent = $1::uuid"
                           " AND e.done_secret IS NULL ORDER BY e.id LIMIT $2::int8) x JOIN open o ON o.id = x.id"
                           " ORDER BY o.id LIMIT $3::int8"};

class PostgresWhy final : public rules::WhyRows {
 public:
  explicit PostgresWhy(Workspace& workspace) : workspace_(workspace) {}

  Time now() override { return workspace_.now(); }
  const QueuePolicies& policies() override { return workspace_.policies(); }
  std::optional<Execution> find(const ExecutionId& id) override {
    auto rows = read_whole(workspace_, {&id, 1});
    if (rows.empty()) return std::nullopt;
    return std::move(rows.front().execution);
  }

  // Type by type and level by level: within one, what is due comes first.
  std::int64_t count_before(const Execution& pending) override {
    const std::int32_t queue = queue_no(pending);
    std::string type;
    const auto count = [&](std::int32_t priority, Time run_at, const ExecutionId& id) {
      Parameters parameters;
      parameters.int4(queue).int4(priority).time(run_at).raw(id);
      return number(kBefore, parameters.int8(kMostCounted).bytes(type));
    };
    std::int64_t before = 0;
    while (before < kMostCounted) {
      const Rows types = workspace_.connection().run(kNextType, Parameters().int4(queue).bytes(type));
      if (types.empty()) break;
      type = Cells(types, 0).text();
      before += count(pending.priority, pending.run_at, pending.id);
      for (std::int32_t level = kMaxPriority + 1; before < kMostCounted;) {
        Parameters parameters;
        parameters.int4(queue).int4(level).int4(pending.priority);
        const Rows rows = workspace_.connection().run(kNextLevel, parameters.bytes(type));
        if (rows.empty()) break;
        level = static_cast<std::int32_t>(Cells(rows, 0).integer());
        before += count(level, now() + Duration(1), ExecutionId());
      }
    }
    return std::min<std::int64_t>(before, kMostCounted);
  }
  std::int64_t count_running(const Execution& pending) override {
    return number(kRunning, Parameters().int4(queue_no(pending)).int8(kMostCounted));
  }
  std::vector<ExecutionId> running_with_key(const Execution& pending, std::int32_t limit) override {
    return ids(kHolders, Parameters().int4(queue_no(pending)).bytes(*pending.concurrency_key).int8(limit));
  }
  RateState rate(const Execution& pending) override {
    const Rows rows = workspace_.connection().run(kRate, Parameters().int4(queue_no(pending)));
    RateState state;
    if (rows.empty()) return state;
    Cells cells(rows, 0);
    state.full_at_ns = cells.integer();
    state.rate.count = cells.integer();
    state.rate.per = Duration(cells.integer());
    state.rate.burst = cells.integer();
    return state;
  }
  std::int64_t count_closed_since(const Execution& pending, Time since) override {
    return number(kClosedSince, Parameters().int4(queue_no(pending)).time(since).int8(kMostCounted));
  }

  std::optional<std::vector<WorkerInfo>> claimers(const Execution& pending, Time since, std::int32_t limit) override {
    return postgres::claimers(workspace_.connection(), pending, since, limit);
  }

  std::vector<Wait> waits_of(const ExecutionId& run) override {
    return postgres::waits_of(workspace_.connection(), run);
  }
  std::vector<ExecutionId> open_steps_of(const ExecutionId& run, std::int32_t limit) override {
    return ids(kOpenSteps, Parameters().raw(run).int8(kMostCounted).int8(limit));
  }

 private:
  std::int32_t queue_no(const Execution& execution) {
    return workspace_.queues().find({execution.name_space, execution.queue, execution.kind}).value_or(0);
  }
  std::int64_t number(const Statement& statement, const Parameters& parameters) {
    const Rows rows = workspace_.connection().run(statement, parameters);
    return Cells(rows, 0).integer();
  }
  std::vector<ExecutionId> ids(const Statement& statement, const Parameters& parameters) {
    const Rows rows = workspace_.connection().run(statement, parameters);
    std::vector<ExecutionId> found;
    for (int i = 0; i < rows.size(); ++i) found.push_back(Cells(rows, i).raw<ExecutionId>());
    return found;
  }

  Workspace& workspace_;
};

}  // namespace

std::optional<Why> why(Runner& runner, const std::string& name_space, const ExecutionId& id) {
  return runner.read_aside([&](Workspace& workspace) {
    PostgresWhy rows(workspace);
    return rules::why(rows, name_space, id);
  });
}

}  // namespace hapax::postgres
