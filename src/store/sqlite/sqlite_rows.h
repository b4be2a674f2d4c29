// The rows of this store, for the rules.
#pragma once

#include <list>
#include <map>

#include "store/rules/rows.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

class SqliteRows final : public rules::Rows {
 public:
  // `requests` is for control operations only.
  explicit SqliteRows(Batch& batch, Requests* requests = nullptr)
      : batch_(batch), runs_(batch.tables.runs()), requests_(requests) {}

  Time now() override { return batch_.now; }
  const QueuePolicies& policies() override { return batch_.policies; }

  std::optional<Execution> load(const ExecutionId& id) override;
  std::optional<Execution> load_state(const ExecutionId& id) override;
  bool exists(const ExecutionId& id) override { return batch_.tables.exists(id); }
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override {
    return runs_.latest(name_space, workflow_id);
  }
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override { return runs_.steps_of(run); }

  void insert(const Execution& execution, std::optional<Duration> run_in) override;
  void save(const Execution& execution) override;
  void erase(const Execution& execution) override;
  SubmitOutcome submit(const Submission& submission) override;

  const LedgerEntry* entry(const Execution& execution) override;
  const Execution* owner(const LedgerEntry& entry) override;
  const Execution* stored(const ExecutionId& id, const LedgerEntry* entry) override;
  void put_entry(const Execution& owner, const LedgerEntry& entry) override;
  void erase_entry(const LedgerEntry& entry) override;

  std::optional<ClosingReport> find_report(const ExecutionId& id) override {
    return batch_.tables.find_report(id, batch_.now);
  }
  void keep_report(const ClosingReport& report, Time until) override;

  std::optional<PastRequest> find_request(const std::string& name_space, const std::string& key) override {
    return requests_->find(name_space, key, batch_.now);
  }
  void put_request(const std::string& name_space, const std::string& key, const PastRequest& past,
                   Time expires_at) override {
    requests_->put(name_space, key, past, batch_.now, expires_at);
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
  Row new_row(const Execution& execution, std::optional<Duration> run_in);
  std::optional<SubmitOutcome> create_new(const Submission& submission);
  Row& loaded(const ExecutionId& id);
  void free_slot(std::int64_t queue_no, const Execution& execution);  // of its concurrency key
  const Held* find_held(const IdentityHash& hash) const;
  void forget_held();  // what was read for a submission has changed

  Batch& batch_;
  RunTables& runs_;
  Requests* requests_;
  std::map<ExecutionId, Row> rows_;  // as they are stored
  std::list<Held> held_;             // the ledger, as read since the last change
  std::optional<Row> stored_;
};

}  // namespace hapax::sqlite
