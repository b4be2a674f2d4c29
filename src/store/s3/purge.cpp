#include <algorithm>

#include "store/s3/in_flight.h"
#include "store/s3/verbs.h"

namespace hapax::s3 {

namespace {

constexpr std::int32_t kAtOnce = 100;

struct Group {
  std::string prefix;  // closed/{namespace}/{queue}/{kind}/
  Duration retention;
};

// The groups that there are: one look each, from the end of the last.
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
    if (!document || !workspace.may_be_purged(document->execution)) return false;
    if (*document->execution.finished_at + retention > batch.now) return false;
    workspace.remember_report(workspace.purge(hint.id));
    return true;
  });
}

// Whether a hint leads to a closed execution that may go now; `named` tells one that is left over.
bool may_go(const Batch& batch, const Listed& listed, const Hint& hint, bool& named) {
  const std::string name = task_name(hint.id);
  const Found found = batch.bucket.look({&name, 1}).front();
  named = false;
  if (!found.exists()) return false;
  const TaskDocument document = read_task(found.content);
  named = std::find(document.hints.begin(), document.hints.end(), listed.name) != document.hints.end();
  if (!named || !document.execution.parent) return named;
  const std::string parent = task_name(*document.execution.parent);
  return !batch.bucket.look({&parent, 1}).front().exists();
}

void collect(const Batch& batch, const Group& group, std::int32_t limit, std::vector<std::pair<Hint, Duration>>& chosen) {
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = batch.bucket.list(group.prefix, after);
    for (const Listed& listed : listing.objects) {
      after = listed.name;
      const auto hint = Hint::parse(listed.name);
      if (!hint) continue;
      if (hint->time + group.retention > batch.now || std::ssize(chosen) >= limit) return;
      bool named = true;
      if (may_go(batch, listed, *hint, named)) chosen.emplace_back(*hint, group.retention);
      if (!named) remove_if_left_over(batch, {listed});
    }
    more = listing.more;
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

// Overwrites the object with a final grave, removes it and then the hint, if `is_over` says so of what lies there.
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
  std::int64_t erased = 0;
  std::string after;
  for (bool more = true; more && erased < limit;) {
    const Listing listing = batch.bucket.list(ends_prefix(end), after, kAtOnce);
    for (const Listed& listed : listing.objects) {
      after = listed.name;
      const auto hint = parse_end_hint(end, listed.name);
      if (!hint) continue;
      if (hint->time > batch.now || erased >= limit) return erased;
      const bool over = erase_if(batch, hint->object_name, [&](const Found& found) { return is_over(found, *hint); });
      if (over) {
        ++erased;
        batch.bucket.remove_leftovers({listed.name});
      } else {
        remove_if_left_over(batch, {listed});
      }
    }
    more = listing.more;
  }
  return erased;
}

}  // namespace

PurgeOutcome purge(const Batch& batch, std::int32_t limit) {
  PurgeOutcome outcome;
  outcome.executions = purge_executions(batch, limit);
  outcome.identities = erase_ended(batch, End::identity, limit, [&](const Found& found, const EndHint&) {
    if (!found.exists()) return false;
    const LedgerEntry entry = read_record(found.content).entry;
    return entry.tombstone && entry.expires_at && *entry.expires_at <= batch.now;
  });
  outcome.requests = erase_ended(batch, End::request, limit, [&](const Found& found, const EndHint&) {
    return found.exists() && read_request(found.content).expires_at <= batch.now;
  });
  erase_ended(batch, End::grave, std::max(limit, kAtOnce), [&](const Found& found, const EndHint&) {
    return found.grave && found.grave->keep_until <= batch.now;
  });
  outcome.more = outcome.executions >= limit || outcome.identities >= limit || outcome.requests >= limit;
  return outcome;
}

}  // namespace hapax::s3
