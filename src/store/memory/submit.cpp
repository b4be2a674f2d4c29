#include "store/rules/submit.h"
#include "core/transition.h"
#include "store/memory/verbs.h"

namespace hapax::memory {
namespace {

class Rows final : public rules::SubmitRows {
 public:
  Rows(Tables& tables, Time now) : tables_(tables), now_(now) {}

  Time now() override { return now_; }
  const QueuePolicies& policies() override { return *tables_.policies; }

  const LedgerEntry* entry(const Execution& execution) override {
    const auto found = tables_.ledger.find(execution.identity->hash);
    return found == tables_.ledger.end() ? nullptr : &found->second;
  }
  const Execution* owner(const LedgerEntry& entry) override { return tables_.find(entry.owner); }
  const Execution* stored(const ExecutionId& id, const LedgerEntry*) override { return tables_.find(id); }

  Effects cancel(const ExecutionId& id) override {
    const Execution& owner = *tables_.find(id);
    const Duration grace = policies().of(owner.name_space, owner.queue).cancel_grace;
    tables_.change(id, [&](Execution& execution) { return request_cancel(execution, grace, now_); });
    Effects effects;
    settle_closed(tables_, id, effects, now_);
    return effects;
  }
  void add(const Submission&, const Execution& execution, const std::optional<LedgerEntry>& entry) override {
    if (entry) tables_.ledger.insert_or_assign(entry->identity.hash, *entry);
    tables_.insert(execution);
  }

 private:
  Tables& tables_;
  const Time now_;
};

}  // namespace

SubmitOutcome submit(Tables& tables, const Submission& submission, Time now) {
  Rows rows(tables, now);
  return rules::submit(rows, submission);
}

}  // namespace hapax::memory
