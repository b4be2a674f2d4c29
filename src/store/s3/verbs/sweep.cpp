#include <algorithm>

#include "store/rules/claim.h"
#include "store/rules/close.h"
#include "store/s3/s3_rows.h"
#include "store/s3/transaction/in_flight.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

bool is_named(const Found& found, const std::string& hint) {
  if (!found.exists()) return false;
  const std::vector<std::string> hints = read_task(found.content).hints;
  return std::find(hints.begin(), hints.end(), hint) != hints.end();
}

}  // namespace

// The truth that a hint leads to may be committed and not applied, or applied since we looked: so first what was
// committed is finished, and then each is looked at once more. What would be committed later began to be written less
// than a minute ago.
void remove_if_left_over(const Batch& batch, const std::vector<Listed>& hints) {
  std::vector<std::string> names;
  for (const Listed& hint : hints) {
    if (batch.now - hint.modified_at >= kGraveTime) names.push_back(hint.name);
  }
  if (names.empty() || batch.bucket.finish_transactions()) return;
  std::vector<std::string> tasks, left_over;
  for (const std::string& name : names) {
    const auto hint = Hint::parse(name);
    tasks.push_back(hint ? task_name(hint->id) : "");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (tasks[i].empty() || !is_named(batch.bucket.look({&tasks[i], 1}).front(), names[i]))
      left_over.push_back(names[i]);
  }
  batch.bucket.remove_leftovers(left_over);
}

namespace {

struct DueHint {
  Listed listed;
  Hint hint;
};

// What a hint leads to: nothing if it is left over. One that leads to a damaged object is passed over.
struct DueTask {
  DueHint hint;
  std::optional<Time> due_at;
};

// How many of a folder's hints are looked at for the next instant at which there is something to do.
constexpr std::size_t kLookedAtNext = 10;

// Earliest first.
struct DueHints {
  std::vector<DueHint> now;
  std::vector<DueHint> next;  // the first ones of each folder that are not due
};

// The hints of a folder are in the order of time; there is one folder for each queue in which something runs. Of those
// that are not due, a page of each folder is listed at most.
DueHints list_due(const Batch& batch, const std::string& prefix) {
  DueHints hints;
  std::string after, folder;
  std::size_t later = 0;  // in this folder
  for (bool more = true; more;) {
    const Listing listing = batch.bucket.list(prefix, after);
    for (const Listed& listed : listing.objects) {
      const auto hint = Hint::parse(listed.name);
      if (!hint) continue;
      const std::string here = listed.name.substr(0, listed.name.rfind('/') + 1);
      if (here != folder) folder = here, later = 0;
      if (hint->time <= batch.now) {
        hints.now.push_back({listed, *hint});
      } else if (later++ < kLookedAtNext) {
        hints.next.push_back({listed, *hint});
      }
    }
    more = listing.more;
    if (!more) break;
    after = listing.objects.back().name;
    if (later == 0) continue;
    if (folder == prefix) break;
    after = folder;
    ++after.back();  // past the slash
  }
  for (std::vector<DueHint>* some : {&hints.now, &hints.next}) {
    std::sort(some->begin(), some->end(), [](const DueHint& a, const DueHint& b) { return a.hint.time < b.hint.time; });
  }
  return hints;
}

std::vector<DueTask> look_up(const Batch& batch, const std::vector<DueHint>& hints) {
  std::vector<std::string> names;
  for (const DueHint& one : hints) names.push_back(task_name(one.hint.id));
  const auto found = batch.bucket.look_at_each(names);
  std::vector<DueTask> tasks;
  for (std::size_t i = 0; i < hints.size(); ++i) {
    if (!found[i].damage.empty()) continue;
    DueTask& task = tasks.emplace_back(DueTask{hints[i], std::nullopt});
    if (!found[i].exists()) continue;
    if (is_named(found[i], hints[i].listed.name)) task.due_at = read_task(found[i].content).execution.due_at();
  }
  return tasks;
}

// The lease was extended since the hint was written: a later one takes its place.
void renew(const Batch& batch, const ExecutionId& id) {
  transact(batch, [&](Workspace& workspace) {
    if (workspace.task(id)) workspace.renew_hints(id);
    return true;
  });
}

Effects end_due(const Batch& batch, const ExecutionId& id) {
  return transact(batch, [&](Workspace& workspace) {
    S3Rows rows(workspace);
    return rules::end_due(rows, id);
  });
}

// Those whose time has come, oldest first.
std::vector<ExecutionId> due_ids(const Batch& batch, const std::vector<DueHint>& hints) {
  std::vector<std::pair<Time, ExecutionId>> due;
  std::vector<Listed> left_over;
  for (const DueTask& task : look_up(batch, hints)) {
    if (!task.due_at) {
      left_over.push_back(task.hint.listed);
    } else if (*task.due_at <= batch.now) {
      due.emplace_back(*task.due_at, task.hint.hint.id);
    } else {
      renew(batch, task.hint.hint.id);
    }
  }
  remove_if_left_over(batch, left_over);
  std::sort(due.begin(), due.end());
  due.erase(std::unique(due.begin(), due.end()), due.end());
  std::vector<ExecutionId> ids;
  for (const auto& [due_at, id] : due) ids.push_back(id);
  return ids;
}

// The first instant at which there is something to do: too early where the hints that were looked at led nowhere.
std::optional<Time> next_due(const Batch& batch, const std::string& prefix) {
  std::optional<Time> earliest, last;
  std::vector<Listed> left_over;
  DueHints hints = list_due(batch, prefix);  // some are due still, if there were more than the limit
  hints.now.insert(hints.now.end(), hints.next.begin(), hints.next.end());
  for (const DueHint& one : hints.now) {
    if (earliest && *earliest <= one.hint.time) break;
    last = one.hint.time;
    const std::vector<DueTask> found = look_up(batch, {one});
    if (found.empty()) continue;
    const std::optional<Time> due = found.front().due_at;
    if (!due) {
      left_over.push_back(one.listed);
      continue;
    }
    if (*due != one.hint.time) renew(batch, one.hint.id);
    keep_earliest(earliest, due);
  }
  remove_if_left_over(batch, left_over);
  return earliest ? earliest : last;
}

}  // namespace

SweepOutcome sweep(const Batch& batch, std::int32_t limit) {
  SweepOutcome outcome;
  batch.bucket.finish_transactions();
  const std::string running(kRunning), due(kDue);
  const DueHints leases = list_due(batch, running), others = list_due(batch, due);
  std::vector<DueHint> hints = leases.now;
  hints.insert(hints.end(), others.now.begin(), others.now.end());
  std::vector<ExecutionId> ids = due_ids(batch, hints);
  if (std::ssize(ids) > limit) ids.resize(static_cast<std::size_t>(std::max(limit, 0)));
  std::vector<Effects> effects(ids.size());
  for_each_in_flight(
      ids.size(), batch.in_flight, [](std::size_t i) { return i; },
      [&](std::size_t i) { effects[i] = end_due(batch, ids[i]); });
  for (const Effects& more : effects) outcome.effects.add(more);
  outcome.more = std::ssize(ids) >= limit;
  outcome.effects.next_due.reset();
  for (const auto& [listed, prefix] : {std::pair(&leases, &running), std::pair(&others, &due)}) {
    if (hints.empty() && listed->next.empty()) continue;
    keep_earliest(outcome.effects.next_due, next_due(batch, *prefix));
  }
  if (outcome.effects.next_due && *outcome.effects.next_due <= batch.now) outcome.effects.next_due.reset();
  return outcome;
}

}  // namespace hapax::s3
