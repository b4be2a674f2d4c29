#include <algorithm>

#include "store/memory/verbs.h"
#include "store/rules/run_rows.h"
#include "store/rules/workflow.h"

namespace hapax::memory {

namespace {

class MemoryRows final : public RunRows {
 public:
  MemoryRows(Tables& tables, Time now) : tables_(tables), now_(now) {}

  Time now() const override { return now_; }
  const QueuePolicies& policies() const override { return *tables_.policies; }

  std::optional<Execution> load(const ExecutionId& id) override {
    const Execution* execution = tables_.find(id);
    return execution ? std::optional(*execution) : std::nullopt;
  }

  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override {
    return memory::latest_run(tables_, name_space, workflow_id);
  }

  std::vector<ExecutionId> steps_of(const ExecutionId& run) override {
    std::vector<ExecutionId> ids;
    const auto [first, last] = tables_.steps().equal_range(run);
    for (auto step = first; step != last; ++step) ids.push_back(step->second);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  void insert(const Execution& execution) override { tables_.insert(execution); }
  void save(const Execution& execution) override {
    tables_.change(execution.id, [&](Execution& stored) { stored = execution; });
  }
  SubmitOutcome submit(const Submission& submission) override { return memory::submit(tables_, submission, now_); }
  void purge_if_unretained(const ExecutionId& id) override { purged_ = tables_.purge_if_unretained(id, now_); }

  std::optional<ExecutionId> live_owner(const IdentityHash& hash) override {
    const auto entry = tables_.ledger.find(hash);
    if (entry == tables_.ledger.end() || !tables_.is_live(entry->second, now_)) return std::nullopt;
    return entry->second.owner;
  }
  void give_identity(const Execution& execution) override { tables_.give_identity(execution); }

  void append(const ExecutionId& run, const std::vector<Event>& events) override {
    auto& history = tables_.histories[run];
    history.insert(history.end(), events.begin(), events.end());
  }
  std::vector<Event> events(const ExecutionId& run) override { return tables_.histories[run]; }
  void replace_events(const ExecutionId& run, const std::vector<Event>& events) override {
    tables_.histories[run] = events;
  }

  void put_wait(const Wait& wait) override { tables_.waits[{wait.run, wait.step}] = wait; }
  std::vector<Wait> waits_of(const ExecutionId& run) override {
    std::vector<Wait> found;
    for (auto wait = tables_.waits.lower_bound({run, 0}); wait != tables_.waits.end() && wait->first.first == run;
         ++wait) {
      found.push_back(wait->second);
    }
    return found;
  }
  std::vector<Wait> waits_on(const ExecutionId& execution) override {
    std::vector<Wait> found;
    for (const auto& [key, wait] : tables_.waits) {
      if (wait.on == execution) found.push_back(wait);
    }
    return found;
  }
  void erase_wait(const ExecutionId& run, std::int32_t step) override { tables_.waits.erase({run, step}); }
  void erase_waits(const ExecutionId& run) override {
    std::erase_if(tables_.waits, [&](const auto& entry) { return entry.first.first == run; });
  }

  void put_signal(const ExecutionId& run, const Event& signal) override { tables_.signals[run].push_back(signal); }
  std::optional<Event> take_signal(const ExecutionId& run, const std::string& name) override {
    auto& waiting = tables_.signals[run];
    for (auto signal = waiting.begin(); signal != waiting.end(); ++signal) {
      if (signal->name != name) continue;
      Event taken = std::move(*signal);
      waiting.erase(signal);
      return taken;
    }
    return std::nullopt;
  }

  std::optional<Execution> purged() { return std::move(purged_); }

 private:
  Tables& tables_;
  Time now_;
  std::optional<Execution> purged_;  // the last one
};

}  // namespace

std::optional<ExecutionId> latest_run(const Tables& tables, const std::string& name_space,
                                      const std::string& workflow_id) {
  std::optional<std::pair<Time, ExecutionId>> latest;
  const auto [first, last] = tables.runs().equal_range(workflow_id);
  for (auto run = first; run != last; ++run) {
    const Execution* execution = tables.find(name_space, run->second);
    if (!execution) continue;
    const std::pair place(execution->created_at, execution->id);
    if (!latest || *latest < place) latest = place;
  }
  return latest ? std::optional(latest->second) : std::nullopt;
}

std::vector<Event> events_after(const Tables& tables, const ExecutionId& run, std::int64_t after, std::int32_t limit,
                                PageBudget& budget) {
  std::vector<Event> events;
  const auto history = tables.histories.find(run);
  if (history == tables.histories.end()) return events;
  for (const Event& event : history->second) {
    if (std::ssize(events) >= limit) break;
    if (event.no > after && !add_event(events, event, budget)) break;
  }
  return events;
}

std::optional<Execution> settle_closed(Tables& tables, const ExecutionId& id, Effects& effects, Time now) {
  const Execution* execution = tables.find(id);
  if (!is_closed(execution->status)) return std::nullopt;
  if (!concerns_workflows(*execution)) return tables.purge_if_unretained(id, now);
  MemoryRows rows(tables, now);
  after_close(rows, Execution(*execution), effects);
  return rows.purged();
}

void wake_run(Tables& tables, const ExecutionId& id, Effects& effects, Time now) {
  MemoryRows rows(tables, now);
  wake_due(rows, *tables.find(id), effects);
}

TurnOutcome commit_turn(Tables& tables, const Turn& turn, Time now) {
  MemoryRows rows(tables, now);
  return hapax::commit_turn(rows, turn);
}

ControlOutcome control(Tables& tables, const ControlRequest& request, Time now) {
  const std::pair key(request.name_space, request.request_key);
  const auto stored = tables.requests.find(key);
  if (stored != tables.requests.end() && stored->second.expires_at > now) {
    return answer_again(stored->second.past, request);
  }
  MemoryRows rows(tables, now);
  const ControlOutcome outcome = hapax::control(rows, request);
  tables.requests.insert_or_assign(
      key, StoredRequest{{request.action, request.target, request.workflow_id, request.parameters, outcome},
                         now + request.request_ttl});
  return outcome;
}

}  // namespace hapax::memory
