// The rows of this store, to which the rules are applied: its documents.
#pragma once

#include <algorithm>

#include "store/rules/rows.h"
#include "store/rules/submit.h"
#include "store/s3/transaction/workspace.h"

namespace hapax::s3 {

class S3Rows final : public rules::Rows {
 public:
  explicit S3Rows(Workspace& workspace) : workspace_(workspace) {}

  Time now() override { return workspace_.now(); }
  const QueuePolicies& policies() override { return workspace_.policies(); }

  std::optional<Execution> load(const ExecutionId& id) override {
    const TaskDocument* document = workspace_.task(id);
    return document ? std::optional(document->execution) : std::nullopt;
  }
  bool exists(const ExecutionId& id) override { return workspace_.task(id) != nullptr; }
  std::optional<ExecutionId> latest_run(const std::string& name_space, const std::string& workflow_id) override {
    return workspace_.latest_run(name_space, workflow_id);
  }
  std::vector<ExecutionId> steps_of(const ExecutionId& run) override { return workspace_.steps_of(run); }

  void insert(const Execution& execution, std::optional<Duration>) override { workspace_.insert(execution); }
  void save(const Execution& execution) override {
    if (TaskDocument* document = workspace_.task(execution.id)) document->execution = execution;
  }
  void erase(const Execution& execution) override { workspace_.erase(execution.id); }
  SubmitOutcome submit(const Submission& submission) override { return rules::submit(*this, submission); }

  const LedgerEntry* entry(const Execution& execution) override {
    record_ = workspace_.record_for(execution);
    return record_ ? &record_->entry : nullptr;
  }
  const Execution* owner(const LedgerEntry& entry) override {
    // Where it was purged there is none, although its id may have come again without its key.
    const TaskDocument* owner = entry.tombstone ? nullptr : workspace_.task(entry.owner);
    return owner ? &owner->execution : nullptr;
  }
  const Execution* stored(const ExecutionId& id, const LedgerEntry* entry) override {
    if (entry && record_ && entry == &record_->entry && is_younger(id, *record_)) return nullptr;
    const TaskDocument* stored = workspace_.task(id);
    return stored ? &stored->execution : nullptr;
  }
  void put_entry(const Execution& owner, const LedgerEntry& entry) override { workspace_.put_record(owner, entry); }
  void erase_entry(const LedgerEntry& entry) override {
    workspace_.erase_record(*workspace_.record(entry.identity.hash));
  }

  std::optional<ClosingReport> find_report(const ExecutionId& id) override {
    const std::optional<Grave>& grave = workspace_.grave(id);
    return grave && grave->keep_until > now() ? grave->report : std::nullopt;
  }
  void keep_report(const ClosingReport& report, Time until) override { workspace_.keep_report(report, until); }

  std::optional<PastRequest> find_request(const std::string& name_space, const std::string& key) override {
    const auto stored = workspace_.request(name_space, key);
    return stored && stored->expires_at > now() ? std::optional(stored->past) : std::nullopt;
  }
  void put_request(const std::string& name_space, const std::string& key, const PastRequest& past,
                   Time expires_at) override {
    workspace_.put_request(name_space, key, {past, expires_at});
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

 private:
  // Whether the id was drawn after those of all that ever owned the identity. Then none of them was stored under it.
  static bool is_younger(const ExecutionId& id, const Record& record) {
    const Time latest = std::max(record.entry.created_at, record.drawn_until.value_or(Time()));
    return record.entry.owner != id && id.drawn_at() > latest;
  }

  Workspace& workspace_;
  const Record* record_ = nullptr;  // whose entry was asked for last
};

}  // namespace hapax::s3
