// The rows of this store, to which the rules are applied.
#include <algorithm>

#include "store/memory/verbs.h"
#include "store/rules/close.h"
#include "store/rules/finish.h"
#include "store/rules/rows.h"
#include "store/rules/submit.h"
#include "store/rules/workflow.h"

namespace hapax::memory {

namespace {

class MemoryRows final : public rules::Rows {
 public:
  MemoryRows(Tables& tables, Time now) : tables_(tables), now_(now) {}

  Time now() override { return now_; }
  const QueuePolicies& policies() override { return *tables_.policies; }

  std::optional<Execution> load(const ExecutionId& id) override {
    const Execution* execution = tables_.find(id);
    return execution ? std::optional(*execution) : std::nullopt;
  }
  bool exists(const ExecutionId& id) override { return tables_.find(id) != nullptr; }

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

  void insert(const Execution& execution, std::optional<Duration>) override { tables_.insert(execution); }
  void save(const Execution& execution) override {
    tables_.change(execution.id, [&](Execution& stored) { stored = execution; });
  }
  void erase(const Execution& execution) override { tables_.erase(execution.id); }
  SubmitOutcome submit(const Submission& submission) override { return rules::submit(*this, submission); }

  const LedgerEntry* entry(const Execution& execution) override {
    const auto found = tables_.ledger.find(execution.identity->hash);
    return found == tables_.ledger.end() ? nullptr : &found->second;
  }
  const Execution* owner(const LedgerEntry& entry) override { return tables_.owner_of(entry); }
  const Execution* stored(const ExecutionId& id, const LedgerEntry*) override { return tables_.find(id); }
  void put_entry(const Execution&, const LedgerEntry& entry) override {
    tables_.ledger.insert_or_assign(entry.identity.hash, entry);
  }
  void erase_entry(const LedgerEntry& entry) override { tables_.ledger.erase(entry.identity.hash); }

  std::optional<ClosingReport> find_report(const ExecutionId& id) override {
    const auto found = tables_.reports.find(id);
    if (found == tables_.reports.end() || found->second.second <= now_) return std::nullopt;
    return found->second.first;
  }
  void keep_report(const ClosingReport& report, Time until) override {
    tables_.reports.insert_or_assign(report.token.execution, std::pair(report, until));
  }

  std::optional<PastRequest> find_request(const std::string& name_space, const std::string& key) override {
    const auto found = tables_.requests.find({name_space, key});
    if (found == tables_.requests.end() || found->second.expires_at <= now_) return std::nullopt;
    return found->second.past;
  }
  void put_request(const std::string& name_space, const std::string& key, const PastRequest& past,
                   Time expires_at) override {
    tables_.requests.insert_or_assign(std::pair(name_space, key), StoredRequest{past, expires_at});
  }

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

 private:
  Tables& tables_;
  const Time now_;
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

SubmitOutcome submit(Tables& tables, const Submission& submission, Time now) {
  return MemoryRows(tables, now).submit(submission);
}

ExtendOutcome extend(Tables& tables, const Extension& extension, Time now) {
  MemoryRows rows(tables, now);
  return rules::extend(rows, extension);
}

FinishOutcome finish(Tables& tables, const Report& report, Time now) {
  MemoryRows rows(tables, now);
  return rules::finish(rows, report);
}

TurnOutcome commit_turn(Tables& tables, const Turn& turn, Time now) {
  MemoryRows rows(tables, now);
  return rules::commit_turn(rows, turn);
}

ControlOutcome control(Tables& tables, const ControlRequest& request, Time now) {
  MemoryRows rows(tables, now);
  return rules::control(rows, request);
}

Effects end_due(Tables& tables, const ExecutionId& id, Time now) {
  MemoryRows rows(tables, now);
  return rules::end_due(rows, id);
}

bool purge(Tables& tables, const ExecutionId& id, Time now) {
  MemoryRows rows(tables, now);
  return rules::purge(rows, id);
}

}  // namespace hapax::memory
