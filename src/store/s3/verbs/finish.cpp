#include <map>
#include <set>

#include "core/rate.h"
#include "store/rules/close.h"
#include "store/rules/finish.h"
#include "store/rules/returned_permits.h"
#include "store/s3/s3_rows.h"
#include "store/s3/transaction/in_flight.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

constexpr int kTakeBackTries = 20;  // others claim from the queue at the same time

}  // namespace

std::vector<bool> write_each(const Batch& batch, std::vector<TaskWrite>& writes,
                             const std::function<std::vector<bool>()>& may_go) {
  const auto started = std::chrono::steady_clock::now();
  std::vector<HintChange> changes;
  std::vector<std::string> hints;
  for (TaskWrite& write : writes) {
    changes.push_back(place_hints(write.document, write.hints_before, batch.now));
    hints.insert(hints.end(), changes.back().added.begin(), changes.back().added.end());
  }
  batch.bucket.put_hints(hints);
  std::vector<bool> written = may_go ? may_go() : std::vector<bool>(writes.size(), true);
  if (std::chrono::steady_clock::now() - started > kLateness) written.assign(writes.size(), false);

  std::vector<Put> puts;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (written[i]) puts.push_back({writes[i].name, seal(s3::write(writes[i].document)), writes[i].replaces});
  }
  const auto outcomes = batch.bucket.put(puts);
  std::vector<std::string> leftovers;
  for (std::size_t i = 0, put = 0; i < writes.size(); ++i) {
    if (written[i]) written[i] = outcomes[put++].written;
    const auto& left = written[i] ? changes[i].dropped : changes[i].added;
    leftovers.insert(leftovers.end(), left.begin(), left.end());
  }
  batch.bucket.remove_leftovers(leftovers);
  return written;
}

namespace {

const ExecutionId& target(const Extension& extension) { return extension.token.execution; }
const ExecutionId& target(const Report& report) { return report.token.execution; }

// Steps of one run that are reported one after the other change it in one transaction: it is written once for all of
// them.
struct Together {
  ExecutionId concerned;
  std::vector<std::size_t> items;
};
constexpr std::size_t kTogether = 32;

// An execution that affects no other and stays is one conditional PUT, and all go together. `change` returns the
// outcome if the item is such a one, and leaves the execution unchanged if there is nothing to write.
template <class Outcome, class Item, class Change>
std::vector<Outcome> each_by_itself(const Batch& batch, std::span<const Item> items, Change change,
                                    Outcome (*rule)(rules::Rows&, const Item&)) {
  std::vector<std::optional<Outcome>> outcomes(items.size());
  std::vector<std::size_t> first;
  std::vector<std::string> names;
  std::set<ExecutionId> ids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!ids.insert(target(items[i])).second) continue;
    first.push_back(i);
    names.push_back(task_name(target(items[i])));
  }
  const auto found = batch.bucket.take(names);
  std::vector<TaskWrite> writes;
  std::vector<std::size_t> written_items;
  std::map<ExecutionId, ExecutionId> runs;  // of steps
  for (std::size_t n = 0; n < first.size(); ++n) {
    if (!found[n].exists()) continue;
    TaskDocument document = read_task(found[n].content);
    const Execution before = document.execution;
    if (before.parent) runs.emplace(before.id, *before.parent);
    auto outcome = change(document.execution, items[first[n]]);
    if (!outcome) continue;
    outcomes[first[n]] = std::move(outcome);
    if (document.execution == before) continue;
    TaskWrite& write = writes.emplace_back();
    write.name = names[n];
    write.replaces = found[n].etag;
    write.hints_before = document.hints;
    write.document = std::move(document);
    written_items.push_back(first[n]);
  }
  const auto written = write_each(batch, writes);
  for (std::size_t n = 0; n < written.size(); ++n) {
    if (!written[n]) outcomes[written_items[n]].reset();
  }
  std::vector<Together> jobs;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (outcomes[i]) continue;
    const auto run = runs.find(target(items[i]));
    const ExecutionId& concerned = run == runs.end() ? target(items[i]) : run->second;
    if (jobs.empty() || jobs.back().concerned != concerned || jobs.back().items.size() >= kTogether)
      jobs.push_back({concerned, {}});
    jobs.back().items.push_back(i);
  }
  for_each_in_flight(
      jobs.size(), batch.in_flight, [&](std::size_t n) { return jobs[n].concerned; },
      [&](std::size_t n) {
        auto done = transact(batch, [&](Workspace& workspace) {
          S3Rows rows(workspace);
          std::vector<Outcome> of_job;
          for (const std::size_t i : jobs[n].items) of_job.push_back(rule(rows, items[i]));
          return of_job;
        });
        for (std::size_t k = 0; k < done.size(); ++k) outcomes[jobs[n].items[k]] = std::move(done[k]);
      });
  std::vector<Outcome> answers;
  for (auto& outcome : outcomes) answers.push_back(*std::move(outcome));
  return answers;
}

void take_back(const Batch& batch, const ReturnedPermits& permits) {
  const QueuePolicy& policy = batch.policies.of(permits.name_space, permits.queue);
  const std::string name = queue_name(permits.name_space, permits.queue);
  for (int tried = 0; tried < kTakeBackTries; ++tried) {
    const Found found = batch.bucket.take({&name, 1}).front();
    if (!found.exists()) return;
    QueueDocument document = read_queue(found.content);
    return_permits(*policy.rate_limit, document.rate, batch.now, permits.count);
    ++document.claims;
    if (batch.bucket.put(Put{name, seal(write(document)), found.etag})) return;
    pause_before_try(tried);
  }
}

}  // namespace

std::vector<ExtendOutcome> extend(const Batch& batch, std::span<const Extension> extensions) {
  const auto change = [&](Execution& execution, const Extension& extension) -> std::optional<ExtendOutcome> {
    if (extension.lease <= Duration(0) && execution.cancel_requested_at) return std::nullopt;  // it may close
    return rules::apply_extension(execution, extension, batch.now);
  };
  auto outcomes = each_by_itself<ExtendOutcome>(batch, extensions, change, rules::extend);
  try {
    for (const ReturnedPermits& permits : returned_permits(extensions, outcomes, batch.policies)) {
      take_back(batch, permits);
    }
  } catch (const Failure&) {
    // They are given back, which is what was asked for. The permits come back with time.
  }
  return outcomes;
}

std::vector<FinishOutcome> finish(const Batch& batch, std::span<const Report> reports) {
  const auto change = [&](Execution& execution, const Report& report) -> std::optional<FinishOutcome> {
    if (rules::concerns_workflows(execution) || batch.policies.retention(execution) == Duration::zero())
      return std::nullopt;
    return rules::apply_report(execution, report, batch.now);
  };
  return each_by_itself<FinishOutcome>(batch, reports, change, rules::finish);
}

}  // namespace hapax::s3
