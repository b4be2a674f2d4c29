// The rules of workflows over this store's rows.

#include <map>

#include "store/rules/workflow.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

class SqliteRows final : public RunRows {
 public:
  explicit SqliteRows(Batch& batch) : batch_(batch), runs_(batch.tables.runs()) {}

  Time now() const override { return batch_.now; }
  const QueuePolicies& policies() const override { return batch_.policies; }

  std::optional<Execution> load(const ExecutionId& id) override {
    auto row = batch_.tables.load_all(id);
    if (!row) return std::nullopt;
    return rows_.insert_or_assign(id, *std::move(row)).first->second.execution;
  }

  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override {
    return runs_.latest(name_space, workflow_id);
  }
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override { return runs_.steps_of(run); }

  void insert(const Execution& execution) override {
    Tables& tables = batch_.tables;
    Row row{.seq = tables.next_seq(),
            .queue_no = tables.queue_no(execution.name_space, execution.queue, execution.kind),
            .execution = execution,
            .run_in = std::max(Duration(0), execution.run_at - batch_.now)};
    tables.insert(row);
    rows_.insert_or_assign(execution.id, std::move(row));
  }

  void save(const Execution& execution) override {
    Row& row = loaded(execution.id);
    const std::size_t known = row.execution.failed_attempts.size();
    row.execution = execution;
    batch_.tables.save(row, known);
    // One that was freed and is closed before anybody claimed it passes its place on, too.
    if (execution.concurrency_key && execution.status != Status::running) {
      const QueuePolicy& policy = batch_.policies.of(execution.name_space, execution.queue);
      batch_.tables.unpark(row.queue_no, *execution.concurrency_key, policy.concurrency_limit);
    }
  }

  SubmitOutcome submit(const Submission& submission) override { return sqlite::submit(batch_, submission); }

  void purge_if_unretained(const ExecutionId& id) override {
    const auto row = batch_.tables.load_all(id);
    if (row && is_closed(row->execution.status) && is_unretained(batch_, *row)) batch_.tables.erase(*row, batch_.now);
  }

  std::optional<ExecutionId> live_owner(const IdentityHash& hash) override {
    const auto held = batch_.tables.find_identity(hash);
    if (!held) return std::nullopt;
    const Execution* owner = held->owner ? &held->owner->execution : nullptr;
    const bool live = is_live(held->entry, owner, retention_of_owner(batch_.policies, *held), batch_.now);
    return live ? std::optional(held->entry.owner) : std::nullopt;
  }
  void give_identity(const Execution& execution) override {
    batch_.tables.take_identity(execution.identity->hash, loaded(execution.id).seq);
  }

  void append(const ExecutionId& run, const std::vector<Event>& events) override {
    for (const Event& event : events) runs_.append(loaded(run).seq, event);
  }
  std::vector<Event> events(const ExecutionId& run) override { return runs_.all_events(loaded(run).seq); }
  void replace_events(const ExecutionId& run, const std::vector<Event>& events) override {
    runs_.erase_events(loaded(run).seq);
    append(run, events);
  }

  void put_wait(const Wait& wait) override { runs_.put_wait(loaded(wait.run).seq, wait); }
  std::vector<Wait> waits_of(const ExecutionId& run) override { return runs_.waits_of(loaded(run).seq); }
  std::vector<Wait> waits_on(const ExecutionId& execution) override { return runs_.waits_on(execution); }
  void erase_wait(const ExecutionId& run, std::int32_t step) override { runs_.erase_wait(loaded(run).seq, step); }
  void erase_waits(const ExecutionId& run) override { runs_.erase_waits(loaded(run).seq); }

  void put_signal(const ExecutionId& run, const Event& signal) override { runs_.put_signal(loaded(run).seq, signal); }
  std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) override {
    return runs_.take_signal(loaded(run).seq, name);
  }

 private:
  Row& loaded(const ExecutionId& id) {
    const auto row = rows_.find(id);
    if (row != rows_.end()) return row->second;
    return rows_.emplace(id, batch_.tables.load_all(id).value()).first->second;
  }

  Batch& batch_;
  RunTables& runs_;
  std::map<ExecutionId, Row> rows_;  // as they are stored
};

}  // namespace

TurnOutcome commit_turn(Batch& batch, const Turn& turn) {
  SqliteRows rows(batch);
  return hapax::commit_turn(rows, turn);
}

void tell_workflows(Batch& batch, const Execution& closed, Effects& effects) {
  SqliteRows rows(batch);
  after_close(rows, closed, effects);
}

void wake_run(Batch& batch, const ExecutionId& id, Effects& effects) {
  SqliteRows rows(batch);
  wake_due(rows, rows.load(id).value(), effects);
}

ControlOutcome run_operation(Batch& batch, const ControlRequest& request) {
  SqliteRows rows(batch);
  return hapax::control(rows, request);
}

}  // namespace hapax::sqlite
