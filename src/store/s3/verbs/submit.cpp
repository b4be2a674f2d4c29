#include <mutex>
#include <set>

#include "store/rules/answer_budget.h"
#include "store/rules/new_execution.h"
#include "store/s3/s3_rows.h"
#include "store/s3/transaction/in_flight.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

// The direct way: writes without reading first. The rules above handle what it meets.
struct Fresh {
  std::size_t index = 0;
  TaskDocument document;
  SubmitOutcome outcome;
  bool lost = false;
};

std::vector<Put> record_puts(const Batch& batch, std::span<const Submission> submissions, std::vector<Fresh>& fresh,
                             std::vector<std::size_t>& keyed) {
  std::vector<Put> puts;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const Execution& execution = fresh[i].document.execution;
    if (!execution.identity) continue;
    Record record;
    record.entry = new_entry(execution, submissions[fresh[i].index].idempotency_ttl);
    record.key = execution.idempotency_key;
    record.task_type = execution.type;
    record.task = write(fresh[i].document);
    fresh[i].outcome.expires_at = dies_at(record.entry, &execution, batch.policies.retention(execution));
    puts.push_back({record_name(execution), seal(write(record)), std::nullopt});
    keyed.push_back(i);
  }
  return puts;
}

// The first of each identity and id in the batch; not the dry ones, nor steps, which what comes before them in the
// batch may cancel.
std::vector<Fresh> straight_ones(const Batch& batch, std::span<const Submission> submissions) {
  std::vector<Fresh> fresh;
  std::set<IdentityHash> hashes;
  std::set<ExecutionId> ids;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const Execution& execution = submissions[i].execution;
    const bool first_of_id = ids.insert(execution.id).second;
    const bool first_of_hash = !execution.identity || hashes.insert(execution.identity->hash).second;
    if (submissions[i].dry_run || submissions[i].run_here || execution.parent) continue;
    if (!first_of_id || !first_of_hash) continue;
    Fresh& one = fresh.emplace_back();
    one.index = i;
    one.document.execution = new_execution(submissions[i], batch.now);
    one.document.mark = new_mark();
    place_hints(one.document, {}, batch.now);
    one.outcome.execution = one.document.execution;
  }
  return fresh;
}

// The task existed: either created by another process that found the record, which is equivalent; or long before, by
// the same submission, which has since lost its identity. Then the record was a mistake.
bool was_made_meanwhile(const Batch& batch, const TaskDocument& document) {
  const auto& identity = document.execution.identity;
  if (!identity) return false;
  return transact(batch, [&](Workspace& workspace) {
    const TaskDocument* stored = workspace.task(document.execution.id);
    if (stored && stored->mark == document.mark) return true;
    const Record* record = workspace.record_for(document.execution);
    if (record && !record->ready && record->entry.owner == document.execution.id) workspace.erase_record(*record);
    return false;
  });
}

}  // namespace

std::vector<SubmitOutcome> submit(const Batch& batch, std::span<const Submission> submissions) {
  const auto started = std::chrono::steady_clock::now();
  std::vector<Fresh> fresh = straight_ones(batch, submissions);
  std::vector<std::size_t> keyed;
  const std::vector<Put> records = record_puts(batch, submissions, fresh, keyed);
  const auto recorded = batch.bucket.put(records);
  for (std::size_t i = 0; i < keyed.size(); ++i) fresh[keyed[i]].lost = !recorded[i].written;
  std::erase_if(fresh, [](const Fresh& one) { return one.lost; });

  std::set<UsedQueue> queues;
  for (const Fresh& one : fresh) queues.insert({one.document.execution.name_space, one.document.execution.queue});
  batch.bucket.mark_used(queues);
  std::vector<std::string> hints;
  for (const Fresh& one : fresh) hints.insert(hints.end(), one.document.hints.begin(), one.document.hints.end());
  batch.bucket.put_hints(hints);

  std::vector<std::optional<SubmitOutcome>> outcomes(submissions.size());
  if (std::chrono::steady_clock::now() - started <= kLateness) {
    std::vector<Put> tasks;
    for (const Fresh& one : fresh)
      tasks.push_back({task_name(one.document.execution.id), seal(write(one.document)), std::nullopt});
    const auto stored = batch.bucket.put(tasks);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (stored[i].written || was_made_meanwhile(batch, fresh[i].document)) {
        outcomes[fresh[i].index] = std::move(fresh[i].outcome);
      } else {
        batch.bucket.remove_leftovers(fresh[i].document.hints);
      }
    }
  }
  const auto identity_of = [&](std::size_t i) {
    const auto& identity = submissions[i].execution.identity;
    return std::pair(identity ? identity->hash : IdentityHash(),
                     identity ? ExecutionId() : submissions[i].execution.id);
  };
  AnswerBudget budget;
  std::mutex mutex;
  for_each_in_flight(submissions.size(), batch.in_flight, identity_of, [&](std::size_t i) {
    if (outcomes[i]) return;
    auto outcome = transact(batch, [&](Workspace& workspace) { return S3Rows(workspace).submit(submissions[i]); });
    const std::lock_guard lock(mutex);
    outcomes[i] = budget.bound(submissions[i], std::move(outcome));
  });
  std::vector<SubmitOutcome> answers;
  for (auto& outcome : outcomes) answers.push_back(*std::move(outcome));
  return answers;
}

}  // namespace hapax::s3
