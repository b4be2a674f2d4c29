// The rules of workflows over this store's documents.

#include <algorithm>

#include "core/transition.h"
#include "store/rules/new_execution.h"
#include "store/rules/run_rows.h"
#include "store/rules/workflow.h"
#include "store/s3/verbs.h"

namespace hapax::s3 {

namespace {

class S3Rows final : public RunRows {
 public:
  explicit S3Rows(Workspace& workspace) : workspace_(workspace) {}

  Time now() const override { return workspace_.now(); }
  const QueuePolicies& policies() const override { return workspace_.policies(); }

  std::optional<Execution> load(const ExecutionId& id) override {
    const TaskDocument* document = workspace_.task(id);
    return document ? std::optional(document->execution) : std::nullopt;
  }
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override {
    return workspace_.latest_run(name_space, workflow_id);
  }
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override { return workspace_.steps_of(run); }

  void insert(const Execution& execution) override { workspace_.insert(execution); }
  void save(const Execution& execution) override {
    if (TaskDocument* document = workspace_.task(execution.id)) document->execution = execution;
  }
  SubmitOutcome submit(const Submission& submission) override { return s3::submit(workspace_, submission); }
  void purge_if_unretained(const ExecutionId& id) override { purged_ = workspace_.purge_if_unretained(id); }

  std::optional<ExecutionId> live_owner(const IdentityHash& hash) override {
    const Record* record = workspace_.record(hash);
    if (!record || !workspace_.is_live(record->entry)) return std::nullopt;
    return record->entry.owner;
  }
  void give_identity(const Execution& execution) override {
    const Record* before = workspace_.record_for(execution);
    LedgerEntry entry = new_entry(execution, std::nullopt);
    if (before) entry.expires_at = before->entry.expires_at;
    workspace_.put_record(execution, entry);
  }

  void append(const ExecutionId& run, const std::vector<Event>& events) override {
    TaskDocument* document = workspace_.task(run);
    if (document) document->history.insert(document->history.end(), events.begin(), events.end());
  }
  std::vector<Event> events(const ExecutionId& run) override {
    const TaskDocument* document = workspace_.task(run);
    return document ? document->history : std::vector<Event>();
  }
  void replace_events(const ExecutionId& run, const std::vector<Event>& events) override {
    if (TaskDocument* document = workspace_.task(run)) document->history = events;
  }

  void put_wait(const Wait& wait) override {
    TaskDocument* document = workspace_.task(wait.run);
    if (!document) return;
    erase_wait(wait.run, wait.step);
    auto place = document->waits.begin();
    while (place != document->waits.end() && place->step < wait.step) ++place;
    document->waits.insert(place, wait);
    if (wait.on) workspace_.add_waiter(*wait.on, {wait.run, wait.step});
  }
  std::vector<Wait> waits_of(const ExecutionId& run) override {
    const TaskDocument* document = workspace_.task(run);
    return document ? document->waits : std::vector<Wait>();
  }
  std::vector<Wait> waits_on(const ExecutionId& execution) override {
    std::vector<Wait> found;
    const TaskDocument* awaited = workspace_.task(execution);
    if (!awaited) return found;
    const std::vector<Waiter> waiters = awaited->waiters;
    for (const Waiter& waiter : waiters) {
      for (const Wait& wait : waits_of(waiter.run)) {
        if (wait.step == waiter.step && wait.on == execution) found.push_back(wait);
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Wait& a, const Wait& b) { return std::tie(a.run, a.step) < std::tie(b.run, b.step); });
    return found;
  }
  void erase_wait(const ExecutionId& run, std::int32_t step) override {
    TaskDocument* document = workspace_.task(run);
    if (document) std::erase_if(document->waits, [&](const Wait& wait) { return wait.step == step; });
  }
  void erase_waits(const ExecutionId& run) override {
    if (TaskDocument* document = workspace_.task(run)) document->waits.clear();
  }

  void put_signal(const ExecutionId& run, const Event& signal) override {
    if (TaskDocument* document = workspace_.task(run)) document->signals.push_back(signal);
  }
  std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) override {
    TaskDocument* document = workspace_.task(run);
    if (!document) return std::nullopt;
    auto& waiting = document->signals;
    const auto signal =
        std::find_if(waiting.begin(), waiting.end(), [&](const Event& event) { return event.name == name; });
    if (signal == waiting.end()) return std::nullopt;
    Event taken = std::move(*signal);
    waiting.erase(signal);
    return taken;
  }

  std::optional<Execution> purged() { return std::move(purged_); }

 private:
  Workspace& workspace_;
  std::optional<Execution> purged_;  // the last one
};

}  // namespace

std::optional<Execution> settle_closed(Workspace& workspace, const ExecutionId& id, Effects& effects) {
  const Execution execution = workspace.task(id)->execution;
  if (!is_closed(execution.status)) return std::nullopt;
  if (!concerns_workflows(execution)) return workspace.purge_if_unretained(id);
  S3Rows rows(workspace);
  after_close(rows, execution, effects);
  return rows.purged();
}

void wake_run(Workspace& workspace, const ExecutionId& id, Effects& effects) {
  S3Rows rows(workspace);
  wake_due(rows, workspace.task(id)->execution, effects);
}

TurnOutcome commit_turn(Workspace& workspace, const Turn& turn) {
  S3Rows rows(workspace);
  return hapax::commit_turn(rows, turn);
}

ControlOutcome control(Workspace& workspace, const ControlRequest& request) {
  const auto stored = workspace.request(request.name_space, request.request_key);
  if (stored && stored->expires_at > workspace.now()) return answer_again(stored->past, request);
  S3Rows rows(workspace);
  const ControlOutcome outcome = hapax::control(rows, request);
  workspace.put_request(request.name_space, request.request_key,
                        {{request.action, request.target, request.workflow_id, request.parameters, outcome},
                         workspace.now() + request.request_ttl});
  return outcome;
}

}  // namespace hapax::s3
