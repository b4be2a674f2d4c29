// The rows of this store, to which the rules are applied, within the transaction of a workspace.
#pragma once

#include <optional>

#include "store/postgres/tables/requests.h"
#include "store/postgres/workspace.h"
#include "store/rules/rows.h"

namespace hapax::postgres {

class PostgresRows final : public rules::Rows {
 public:
  // `requests` is for control operations alone.
  explicit PostgresRows(Workspace& workspace, Requests* requests = nullptr)
      : workspace_(workspace), requests_(requests) {}

  Time now() override { return workspace_.now(); }
  const QueuePolicies& policies() override { return workspace_.policies(); }

  std::optional<Execution> load(const ExecutionId& id) override;
  std::optional<Execution> load_state(const ExecutionId& id) override;  // of what is locked
  bool exists(const ExecutionId& id) override { return workspace_.load(id) != nullptr; }
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override;
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override { return workspace_.lock_open_steps(run); }
  void insert(const Execution& execution, std::optional<Duration> run_in) override;
  void save(const Execution& execution) override;
  void erase(const Execution& execution) override { workspace_.erase(*workspace_.load(execution.id)); }
  SubmitOutcome submit(const Submission& submission) override;

  const LedgerEntry* entry(const Execution& execution) override;
  const LedgerEntry* lock_entry(const Execution& execution) override;
  const Execution* owner(const LedgerEntry& entry) override;
  const Execution* stored(const ExecutionId& id, const LedgerEntry* entry) override;
  void put_entry(const Execution&, const LedgerEntry& entry) override { workspace_.put_entry(entry); }
  void erase_entry(const LedgerEntry& entry) override { workspace_.remove_entry(entry.identity.hash); }

  std::optional<ClosingReport> find_report(const ExecutionId& id) override { return workspace_.report(id); }
  void keep_report(const ClosingReport& report, Time until) override { workspace_.keep_report(report, until); }

  std::optional<PastRequest> find_request(const std::string& name_space, const std::string& key) override {
    return requests_->find(name_space, key, now());
  }
  void put_request(const std::string& name_space, const std::string& key, const PastRequest& past,
                   Time expires_at) override {
    requests_->put(name_space, key, past, expires_at);
  }

  void append(const ExecutionId& run, const std::vector<Event>& events) override;
  std::vector<Event> events(const ExecutionId& run) override;
  void replace_events(const ExecutionId& run, const std::vector<Event>& events) override;

  void put_wait(const Wait& wait) override;
  std::vector<Wait> waits_of(const ExecutionId& run) override;
  std::vector<Wait> waits_on(const ExecutionId& execution) override;
  void erase_wait(const ExecutionId& run, std::int32_t step) override;
  void erase_waits(const ExecutionId& run) override;

  void put_signal(const ExecutionId& run, const Event& signal) override;
  std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) override;

 private:
  Connection& connection();  // for what is not gathered

  Workspace& workspace_;
  Requests* requests_;
};

}  // namespace hapax::postgres
