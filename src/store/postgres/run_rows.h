// The rules of workflows over this store's rows, within the transaction of a workspace.
#pragma once

#include <optional>

#include "store/postgres/workspace.h"
#include "store/rules/run_rows.h"

namespace hapax::postgres {

class PostgresRows final : public RunRows {
 public:
  explicit PostgresRows(Workspace& workspace) : workspace_(workspace), now_(workspace.now()) {}

  // What purge_if_unretained() deleted last.
  std::optional<Execution> take_erased() { return std::move(erased_); }

  Time now() const override { return now_; }
  const QueuePolicies& policies() const override { return workspace_.policies(); }

  std::optional<Execution> load(const ExecutionId& id) override;
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override;
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override;
  void insert(const Execution& execution) override;
  void save(const Execution& execution) override;
  SubmitOutcome submit(const Submission& submission) override;
  void purge_if_unretained(const ExecutionId& id) override;

  std::optional<ExecutionId> live_owner(const IdentityHash& hash) override;
  void give_identity(const Execution& execution) override;

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
  const Time now_;
  std::optional<Execution> erased_;
};

}  // namespace hapax::postgres
