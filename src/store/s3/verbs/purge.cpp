#include <algorithm>
#include <atomic>

#include "store/rules/close.h"
#include "store/s3/s3_rows.h"
#include "store/s3/transaction/in_flight.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

constexpr std::int32_t kAtOnce = 100;

struct Group {
  std::string prefix;  // closed/{namespace}/{queue}/{kind}/
  Duration retention;
};

// The groups that exist: one listing each, from the end of the last.
std::vector<Group> closed_groups(const Batch& batch) {
  std::vector<Group> groups;
  std::string after;
  for (;;) {
    const Listing listing = batch.bucket.list(std::string(kClosed), after, 1);
    if (listing.objects.empty()) return groups;
    const std::string& name = listing.objects.front().name;
    const auto hint = Hint::parse(name);
    after = name;
    if (!hint) continue;
    Group& group = groups.emplace_back();
    group.prefix = name.substr(0, name.rfind('/') + 1);
    group.retention = batch.policies.retention(hint->name_space, hint->queue, hint->execution_kind);
    after = group.prefix + "~";
  }
}

// Deletes one if that is still right: closed since long enough, and of no workflow that is still there.
bool purge_one(const Batch& batch, const Hint& hint, Duration retention) {
  return transact(batch, [&](Workspace& workspace) {
    const TaskDocument* document = workspace.task(hint.id);
    if (!document || !is_closed(document->execution.status)) return false;
    if (*document->execution.finished_at + retention > batch.now) return false;
    S3Rows rows(workspace);
    return rules::purge(rows, hint.id);
  });
}

struct ClosedHint {
  Listed listed;
  Hint hint;
};

// Those of the hints that lead to executions which may go now.
std::vector<Hint> which_may_go(const Batch& batch, std::span<const ClosedHint> hints) {
  std::vector<std::string> names;
  for (const ClosedHint& one : hints) names.push_back(task_name(one.hint.id));
  const auto found = batch.bucket.look_at_each(names);
  std::vector<const ClosedHint*> named;
  std::vector<std::string> parents;  // of steps: they stay as long as those do
  std::vector<Listed> left_over;
  for (std::size_t i = 0; i < hints.size(); ++i) {
    if (!found[i].damage.empty()) continue;
    const TaskDocument document = found[i].exists() ? read_task(found[i].content) : TaskDocument();
    if (std::find(document.hints.begin(), document.hints.end(), hints[i].listed.name) == document.hints.end()) {
      left_over.push_back(hints[i].listed);
      continue;
    }
    named.push_back(&hints[i]);
    parents.push_back(document.execution.parent ? task_name(*document.execution.parent) : "");
  }
  remove_if_left_over(batch, left_over);
  std::vector<std::string> asked = parents;
  std::erase(asked, "");
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  const auto answers = batch.bucket.look(asked);
  std::vector<Hint> free;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const auto parent = std::lower_bound(asked.begin(), asked.end(), parents[i]);
    const bool held = !parents[i].empty() && answers[static_cast<std::size_t>(parent - asked.begin())].exists();
    if (!held) free.push_back(named[i]->hint);
  }
  return free;
}

void collect(const Batch& batch, const Group& group, std::int32_t limit,
             std::vector<std::pair<Hint, Duration>>& chosen) {
  std::string after;
  for (bool more = true; more && std::ssize(chosen) < limit;) {
    const Listing listing = batch.bucket.list(group.prefix, after, kAtOnce);
    std::vector<ClosedHint> over;
    for (const Listed& listed : listing.objects) {
      after = listed.name;
      const auto hint = Hint::parse(listed.name);
      if (hint && hint->time + group.retention <= batch.now) over.push_back({listed, *hint});
    }
    for (Hint& hint : which_may_go(batch, over)) {
      if (std::ssize(chosen) < limit) chosen.emplace_back(std::move(hint), group.retention);
    }
    more = listing.more && over.size() == listing.objects.size();
  }
}

std::int64_t purge_executions(const Batch& batch, std::int32_t limit) {
  std::vector<std::pair<Hint, Duration>> chosen;
  for (const Group& group : closed_groups(batch)) collect(batch, group, limit, chosen);
  std::atomic<std::int64_t> purged = 0;
  for_each_in_flight(
      chosen.size(), batch.in_flight, [](std::size_t i) { return i; },
      [&](std::size_t i) { purged += purge_one(batch, chosen[i].first, chosen[i].second) ? 1 : 0; });
  return purged;
}

// Overwrites the object with a final grave, removes it and then the hint, if `is_over` says so about the object.
template <class IsOver>
bool erase_if(const Batch& batch, const std::string& name, IsOver is_over) {
  const auto started = std::chrono::steady_clock::now();
  const Found found = batch.bucket.take({&name, 1}).front();
  if (!found.etag || !is_over(found)) return false;
  Grave grave;
  grave.at = grave.keep_until = batch.bucket.now();
  grave.final = true;
  if (!batch.bucket.put(Put{name, seal(write(grave)), found.etag})) return false;
  if (std::chrono::steady_clock::now() - started < kLateness) batch.bucket.remove_leftovers({name});
  return true;
}

// The objects whose time is over, the longest first.
template <class IsOver>
std::int64_t erase_ended(const Batch& batch, End end, std::int32_t limit, IsOver is_over) {
  std::atomic<std::int64_t> erased = 0;
  std::string after;
  for (bool more = true; more && erased < limit;) {
    const auto at_once = static_cast<std::int32_t>(std::min<std::int64_t>(limit - erased, kAtOnce));
    const Listing listing = batch.bucket.list(ends_prefix(end), after, at_once);
    std::vector<std::pair<Listed, std::string>> ended;
    for (const Listed& listed : listing.objects) {
      after = listed.name;
      const auto hint = parse_end_hint(end, listed.name);
      if (hint && hint->time <= batch.now) ended.emplace_back(listed, hint->object_name);
    }
    for_each_in_flight(
        ended.size(), batch.in_flight, [&](std::size_t i) { return ended[i].second; },
        [&](std::size_t i) {
          if (erase_if(batch, ended[i].second, is_over)) {
            ++erased;
            batch.bucket.remove_leftovers({ended[i].first.name});
          } else {
            remove_if_left_over(batch, {ended[i].first});
          }
        });
    more = listing.more && ended.size() == listing.objects.size();
  }
  return erased;
}

}  // namespace

std::int64_t purge_requests(const Batch& batch, std::int32_t limit) {
  return erase_ended(batch, End::request, limit, [&](const Found& found) {
    return found.exists() && read_request(found.content).expires_at <= batch.now;
  });
}

PurgeOutcome purge(const Batch& batch, std::int32_t limit) {
  PurgeOutcome outcome;
  outcome.executions = purge_executions(batch, limit);
  outcome.identities = erase_ended(batch, End::identity, limit, [&](const Found& found) {
    if (!found.exists()) return false;
    const LedgerEntry entry = read_record(found.content).entry;
    return entry.tombstone && entry.expires_at && *entry.expires_at <= batch.now;
  });
  outcome.requests = purge_requests(batch, limit);
  const std::int32_t most_graves = std::max(limit, kAtOnce);
  const std::int64_t graves = erase_ended(batch, End::grave, most_graves, [&](const Found& found) {
    return found.grave && found.grave->keep_until <= batch.now;
  });
  outcome.more_reports = graves >= most_graves;
  forget_workers(batch, std::max(limit, kAtOnce));
  outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
  return outcome;
}

}  // namespace hapax::s3
