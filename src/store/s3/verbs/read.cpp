#include <algorithm>
#include <map>
#include <set>

#include "store/s3/documents/archive.h"
#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

// How many objects are read at once: each may be large.
constexpr std::size_t kReadAtOnce = 16;

template <class Visit>
void for_each_listed(Bucket& bucket, const std::string& prefix, Visit visit) {
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket.list(prefix, after);
    for (const Listed& object : listing.objects) visit(object.name);
    if (!listing.objects.empty()) after = listing.objects.back().name;
    more = listing.more;
  }
}

bool matches(const Execution& execution, const ListFilter& filter) {
  return execution.name_space == filter.name_space && execution.kind == filter.kind &&
         (!filter.queue || execution.queue == *filter.queue) && (!filter.type || execution.type == *filter.type) &&
         (!filter.idempotency_key || execution.idempotency_key == filter.idempotency_key) &&
         (!filter.status || execution.status == *filter.status) &&
         (!filter.parent || execution.parent == filter.parent);
}

// Names only, of as few executions as the filter allows without reading them, and none of another namespace. An
// execution that changes its status has the hints of both for a while, so they are listed in that order.
std::vector<ExecutionId> candidates(Bucket& bucket, const ListFilter& filter) {
  std::vector<ExecutionId> ids;
  const auto add_hinted = [&](const std::string& prefix) {
    for_each_listed(bucket, prefix, [&](const std::string& name) {
      const auto hint = Hint::parse(name);
      if (!hint || (filter.before && hint->id >= *filter.before)) return;
      ids.push_back(hint->id);
    });
  };
  const auto may_be = [&](bool status) { return !filter.status || status; };
  if (filter.parent) {
    add_hinted(steps_prefix(*filter.parent));
  } else if (filter.kind == Kind::workflow) {
    add_hinted(filter.idempotency_key ? runs_prefix(filter.name_space, *filter.idempotency_key)
                                      : all_runs_prefix(filter.name_space));
  } else {
    if (may_be(filter.status == Status::pending)) {
      add_hinted(filter.queue ? ready_prefix(filter.name_space, *filter.queue, filter.kind)
                              : namespace_prefix(kReady, filter.name_space));
    }
    if (may_be(filter.status == Status::running)) {
      add_hinted(filter.queue ? running_prefix(filter.name_space, *filter.queue, filter.kind)
                              : namespace_prefix(kRunning, filter.name_space));
    }
    if (may_be(filter.status && is_closed(*filter.status))) {
      add_hinted(filter.queue ? closed_prefix(filter.name_space, *filter.queue, filter.kind)
                              : namespace_prefix(kClosed, filter.name_space));
    }
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// The steps of a run of another namespace are not even counted.
bool is_foreign(Bucket& bucket, const ListFilter& filter) {
  if (!filter.parent) return false;
  const std::string name = task_name(*filter.parent);
  const Found parent = bucket.look({&name, 1}).front();
  return parent.exists() && read_task(parent.content).execution.name_space != filter.name_space;
}

}  // namespace

std::optional<Execution> find(Bucket& bucket, const std::string& name_space, const ExecutionId& id) {
  const std::string name = task_name(id);
  const Found found = bucket.look({&name, 1}).front();
  if (!found.exists()) return std::nullopt;
  Execution execution = read_task(found.content).execution;
  return execution.name_space == name_space ? std::optional(std::move(execution)) : std::nullopt;
}

namespace {

// False: the page is full. What an earlier version wrote has no checksum, but it must be what this program writes.
bool add(const ExecutionId& id, const Found& found, const ListFilter& filter, PageFiller& page) {
  if (!found.damage.empty()) return page.add(Damaged{id, found.damage});
  if (!found.exists()) return true;
  try {
    Execution execution = read_task(found.content).execution;
    return !matches(execution, filter) || page.add(std::move(execution));
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
    return page.add(Damaged{id, failure.what()});
  }
}

}  // namespace

Page list(Bucket& bucket, const ListFilter& filter) {
  PageFiller page(filter.limit);
  if (filter.limit <= 0 || is_foreign(bucket, filter)) return page.take();
  const std::vector<ExecutionId> ids = candidates(bucket, filter);
  for (std::size_t from = 0; from < ids.size(); from += kReadAtOnce) {
    std::vector<std::string> names;
    for (std::size_t i = from; i < std::min(from + kReadAtOnce, ids.size()); ++i) names.push_back(task_name(ids[i]));
    const std::vector<Found> read = bucket.look_at_each(names);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (!add(ids[from + i], read[i], filter, page)) return page.take();
    }
  }
  return page.take();
}

std::vector<QueueCount> count(Bucket& bucket, const std::optional<std::string>& name_space) {
  std::map<std::pair<std::string, std::string>, QueueCount> queues;
  std::set<ExecutionId> pending, running;  // one may have a hint left over besides its own
  const auto named = [&](const std::string& in, const std::string& name) -> QueueCount& {
    QueueCount& queue = queues[{in, name}];
    queue.name_space = in;
    queue.queue = name;
    return queue;
  };
  const auto queue_of = [&](const Hint& hint) -> QueueCount& { return named(hint.name_space, hint.queue); };
  const auto all = [&](std::string_view folder) {
    return name_space ? namespace_prefix(folder, *name_space) : std::string(folder);
  };
  for_each_listed(bucket, all(kReady), [&](const std::string& name) {
    const auto hint = Hint::parse(name);
    if (!hint || !pending.insert(hint->id).second) return;
    QueueCount& queue = queue_of(*hint);
    ++queue.pending;
    if (!queue.oldest_run_at || hint->time < *queue.oldest_run_at) queue.oldest_run_at = hint->time;
  });
  for_each_listed(bucket, all(kRunning), [&](const std::string& name) {
    const auto hint = Hint::parse(name);
    if (hint && running.insert(hint->id).second) ++queue_of(*hint).running;
  });
  for_each_listed(bucket, all(kUsedQueues), [&](const std::string& name) {
    if (const auto used = parse_used_queue(name)) named(used->name_space, used->queue);
  });
  std::vector<QueueCount> counts;
  for (auto& [name, queue] : queues) counts.push_back(std::move(queue));
  return counts;
}

std::vector<Event> history(Bucket& bucket, const ExecutionId& run, std::int64_t after, std::int32_t limit) {
  const std::string name = task_name(run);
  const Found found = bucket.look({&name, 1}).front();
  std::vector<Event> events;
  if (!found.exists()) return events;
  PageBudget budget;
  for (Event& event : read_task(found.content).history) {
    if (std::ssize(events) >= limit) break;
    if (event.no > after && !add_event(events, std::move(event), budget)) break;
  }
  return events;
}

std::optional<FoundIdentity> find_identity(const Batch& batch, const std::string& name) {
  const Found found = batch.bucket.look({&name, 1}).front();
  if (!found.exists()) return std::nullopt;
  const Record record = read_record(found.content);
  FoundIdentity identity;
  identity.entry = record.entry;
  const std::string owner = task_name(record.entry.owner);
  const Found task = record.entry.tombstone ? Found() : batch.bucket.look({&owner, 1}).front();
  if (task.exists()) {
    identity.owner = read_task(task.content).execution;
  } else if (record.task) {
    identity.owner = read_task(*record.task).execution;  // about to be put
  } else if (!record.entry.tombstone) {
    return std::nullopt;
  }
  const Execution* execution = identity.owner ? &*identity.owner : nullptr;
  const auto& tombstone = record.entry.tombstone;
  const Duration retention = execution
                                 ? batch.policies.retention(*execution)
                                 : batch.policies.retention(record.entry.name_space, tombstone->queue, tombstone->kind);
  identity.live = is_live(record.entry, execution, retention, batch.now);
  identity.expires_at = dies_at(record.entry, execution, retention);
  return identity;
}

bool release_identity(const Batch& batch, const std::string& name_space, const IdentityHash& hash) {
  return transact(batch, [&](Workspace& workspace) {
    const Record* record = workspace.record(hash);
    if (!record || record->entry.name_space != name_space) return false;
    workspace.erase_record(*record);
    return true;
  });
}

// ---- settings

namespace {

// The name of the object tells the rest, too; but only what is in it is sure to come back as it was.
struct StoredSetting {
  std::string name_space, name, document;
  bool queue = false;
};

template <class Archive>
void fields(Archive& archive, StoredSetting& setting) {
  archive("name_space", setting.name_space);
  archive("queue", setting.queue);
  archive("name", setting.name);
  archive("document", setting.document);
}

}  // namespace

std::vector<SettingDocument> settings(Bucket& bucket) {
  std::vector<std::string> names;
  for_each_listed(bucket, std::string(kSettings), [&](const std::string& name) { names.push_back(name); });
  std::vector<SettingDocument> all;
  if (names.empty()) return all;
  for (const Found& found : bucket.look(names)) {
    if (!found.exists()) continue;
    StoredSetting stored = Reader::object<StoredSetting>(found.content);
    const auto kind = stored.queue ? SettingDocument::Kind::queue : SettingDocument::Kind::type;
    all.push_back({std::move(stored.name_space), kind, std::move(stored.name), std::move(stored.document)});
  }
  std::sort(all.begin(), all.end(), [](const SettingDocument& a, const SettingDocument& b) {
    return std::tie(a.name_space, a.kind, a.name) < std::tie(b.name_space, b.kind, b.name);
  });
  return all;
}

void put_setting(Bucket& bucket, const SettingDocument& setting) {
  const StoredSetting stored{setting.name_space, setting.name, setting.document,
                             setting.kind == SettingDocument::Kind::queue};
  const std::string name = setting_name(setting);
  for (int tried = 0; tried < 100; ++tried) {
    const Found found = bucket.take({&name, 1}).front();
    if (bucket.put(Put{name, seal(Writer::text(stored)), found.etag})) return;
    pause_before_try(tried);
  }
  throw Failure(Failure::Code::unavailable, "others changed the same setting again and again; try again");
}

}  // namespace hapax::s3
