#include "store/s3/documents/activity_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "store/call_deadline.h"
#include "store/rules/activity_rules.h"
#include "store/s3/documents/archive.h"
#include "store/s3/documents/names.h"

namespace hapax::s3 {

template <>
struct Words<Cause> {
  static constexpr auto kWords = std::to_array<std::string_view>({"schedule", "event", "trigger"});
};
template <>
struct Words<Disposition> {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"ran", "skipped", "caught_up", "compressed", "duplicate"});
};

}  // namespace hapax::s3

namespace hapax {

template <class Archive>
void fields(Archive& archive, ActivityRow& row) {
  archive("name_space", row.name_space);
  archive("id", row.id);
  archive("document", row.document);
  archive("by_event", row.by_event);
  archive("next_due", row.next_due);
  archive("revision", row.revision);
}

template <class Archive>
void fields(Archive& archive, Window& window) {
  archive("from", window.from);
  archive("to", window.to);
  archive("missed", window.missed);
}

template <class Archive>
void fields(Archive& archive, FiringEvent& event) {
  archive("id", event.id);
  archive("source", event.source);
  archive("hash", event.hash.bytes);
}

template <class Archive>
void fields(Archive& archive, ActivityRun& run) {
  archive("name_space", run.name_space);
  archive("activity", run.activity);
  archive("occurrence", run.occurrence);
  archive("cause", run.cause);
  archive("at", run.at);
  archive("disposition", run.disposition);
  archive("workflow_id", run.workflow_id);
  archive("window", run.window);
  archive("event", run.event);
  archive("why", run.why);
  archive("recorded_at", run.recorded_at);
}

}  // namespace hapax

namespace hapax::s3 {

namespace {

constexpr std::string_view kActivities = "activities/";
constexpr std::string_view kScheduled = "scheduled/";
constexpr std::string_view kFiringAges = "firing-ages/";
constexpr int kTries = 100;
constexpr std::int64_t kLastTime = (std::int64_t{1} << 48) - 1;

template <class Value>
struct Hinted {
  Value value;
  std::vector<std::string> hints;
};
template <class Archive, class Value>
void fields(Archive& archive, Hinted<Value>& hinted) {
  fields(archive, hinted.value);
  archive("hints", hinted.hints);
}
using StoredActivity = Hinted<ActivityRow>;
using StoredRun = Hinted<ActivityRun>;

[[noreturn]] void too_many_tries() {
  throw Failure(Failure::Code::unavailable, "others changed the same activity again and again; try again");
}

std::string digits(Time time) { return fmt::format("{:012x}", to_ms(time)); }

std::string activity_name(const std::string& name_space, const std::string& id) {
  return fmt::format("{}{}/{}.json", kActivities, escape(name_space), escape(id));
}
std::string firing_path(const ActivityRun& run) {
  return fmt::format("{}/{}/{}", escape(run.name_space), escape(run.activity),
                     InputHash{sha256(run.occurrence)}.to_string().substr(7));
}
std::string firing_name(std::string_view path) { return fmt::format("firings/{}.json", path); }
std::string times_prefix(const std::string& name_space, const std::string& activity) {
  return fmt::format("firing-times/{}/{}/", escape(name_space), escape(activity));
}

// {time}-{mark}/{the rest of the name}
struct Timed {
  Time time;
  std::string rest;
};
std::optional<Timed> parse_timed(std::string_view name, std::string_view prefix) {
  name.remove_prefix(std::min(prefix.size(), name.size()));
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash < 12) return std::nullopt;
  const std::string digits(name.substr(0, 12));
  return Timed{from_ms(std::stoll(digits, nullptr, 16)), std::string(name.substr(slash + 1))};
}

template <class Visit>
void for_each_listed(Bucket& bucket, const std::string& prefix, Visit visit) {
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket.list(prefix, after);
    for (const Listed& listed : listing.objects) {
      if (!visit(listed)) return;
    }
    if (!listing.objects.empty()) after = listing.objects.back().name;
    more = listing.more;
  }
}

void remove_if_old(Bucket& bucket, const Listed& hint) {
  if (bucket.now() - hint.modified_at >= kGraveTime) bucket.remove_leftovers({hint.name});
}

bool names(const std::vector<std::string>& hints, const std::string& name) {
  return std::find(hints.begin(), hints.end(), name) != hints.end();
}

// Replaces what was found by a grave that stays for a while.
bool bury(Bucket& bucket, const std::string& name, const Found& found) {
  Grave grave;
  grave.at = bucket.now();
  grave.keep_until = grave.at + kGraveTime;
  bucket.put_hints({end_hint(End::grave, grave.keep_until, name)});
  return bucket.put(Put{name, seal(write(grave)), found.etag});
}

// The hints first, then the object, then the hints that it had before.
template <class Value>
bool store(Bucket& bucket, const std::string& name, const Found& found, const Hinted<Value>& stored,
           const std::vector<std::string>& before) {
  bucket.put_hints(stored.hints);
  const bool written = bucket.put(Put{name, seal(Writer::text(stored)), found.etag});
  bucket.remove_leftovers(written ? before : stored.hints);
  return written;
}

bool change_one(Bucket& bucket, const ActivityChange& change) {
  const std::string name = activity_name(change.row.name_space, change.row.id);
  for (int tried = 0; tried < kTries; ++tried) {
    const Found found = bucket.take({&name, 1}).front();
    std::optional<StoredActivity> stored;
    if (found.exists()) stored = Reader::object<StoredActivity>(found.content);
    const ActivityVerdict verdict = judge(change, stored ? &stored->value : nullptr);
    if (verdict != ActivityVerdict::apply) return verdict == ActivityVerdict::done;
    const std::vector<std::string> before = stored ? stored->hints : std::vector<std::string>();
    if (change.remove) {
      if (bury(bucket, name, found)) return bucket.remove_leftovers(before), true;
    } else {
      StoredActivity next{change.row, {}};
      next.value.revision = next_revision(change);
      if (const auto due = change.row.next_due) {
        next.hints.push_back(fmt::format("{}{}-{}/{}/{}", kScheduled, digits(*due), new_mark(),
                                         escape(change.row.name_space), escape(change.row.id)));
      }
      if (s3::store(bucket, name, found, next, before)) return true;
    }
    pause_before_try(tried);
  }
  too_many_tries();
}

ActivityRun record_one(Bucket& bucket, const ActivityRun& run) {
  const std::string path = firing_path(run), name = firing_name(path);
  for (int tried = 0; tried < kTries; ++tried) {
    const Found found = bucket.take({&name, 1}).front();
    std::optional<StoredRun> stored;
    if (found.exists()) stored = Reader::object<StoredRun>(found.content);
    if (stored && !gives_way(stored->value.disposition, run.disposition)) return stored->value;
    StoredRun next{run, {}};
    next.value.recorded_at = bucket.now();
    const std::string inverted = digits(from_ms(kLastTime - to_ms(run.at)));
    next.hints.push_back(
        fmt::format("{}{}-{}/{}", times_prefix(run.name_space, run.activity), inverted, new_mark(), path));
    next.hints.push_back(fmt::format("{}{}-{}/{}", kFiringAges, digits(next.value.recorded_at), new_mark(), path));
    if (s3::store(bucket, name, found, next, stored ? stored->hints : std::vector<std::string>())) return next.value;
    pause_before_try(tried);
  }
  too_many_tries();
}

bool is_newer(const ActivityRun& a, const ActivityRun& b) {
  return std::tie(b.at, b.occurrence) < std::tie(a.at, a.occurrence);
}

}  // namespace

std::optional<ActivityRow> ActivityObjects::find(const std::string& name_space, const std::string& id) {
  const CallDeadline deadline(timeout_);
  Bucket bucket(*objects_);
  const std::string name = activity_name(name_space, id);
  const Found found = bucket.look({&name, 1}).front();
  return found.exists() ? std::optional(Reader::object<StoredActivity>(found.content).value) : std::nullopt;
}

std::vector<ActivityRow> ActivityObjects::list(const ActivityFilter& filter) {
  const CallDeadline deadline(timeout_);
  check_filter(filter);
  Bucket bucket(*objects_);
  std::string prefix(kActivities);
  if (filter.name_space) prefix += escape(*filter.name_space) + "/";
  std::vector<std::string> names;
  for_each_listed(bucket, prefix, [&](const Listed& listed) { return names.push_back(listed.name), true; });
  std::vector<ActivityRow> rows;
  if (names.empty()) return rows;
  for (const Found& found : bucket.look(names)) {
    if (!found.exists()) continue;
    ActivityRow row = Reader::object<StoredActivity>(found.content).value;
    if ((!filter.by_event || row.by_event == *filter.by_event) && row.id > filter.after) rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const ActivityRow& a, const ActivityRow& b) {
    return std::tie(a.name_space, a.id) < std::tie(b.name_space, b.id);
  });
  if (std::ssize(rows) > filter.limit) rows.resize(static_cast<std::size_t>(std::max(filter.limit, 0)));
  return rows;
}

std::vector<bool> ActivityObjects::change(std::span<const ActivityChange> changes) {
  const CallDeadline deadline(timeout_);
  Bucket bucket(*objects_);
  std::vector<bool> did;
  for (const ActivityChange& change : changes) did.push_back(change_one(bucket, change));
  if (bucket.wrote()) changed_();
  return did;
}

DueActivities ActivityObjects::due(std::int32_t limit) {
  const CallDeadline deadline(timeout_);
  limit = std::max(limit, 0);
  Bucket bucket(*objects_);
  const Time now = bucket.now();
  std::vector<ActivityRow> rows;
  DueActivities due;
  for_each_listed(bucket, std::string(kScheduled), [&](const Listed& listed) {
    const auto hint = parse_timed(listed.name, kScheduled);
    if (!hint) return true;
    const std::string name = fmt::format("{}{}.json", kActivities, hint->rest);
    const Found found = bucket.look({&name, 1}).front();
    std::optional<StoredActivity> stored;
    if (found.exists()) stored = Reader::object<StoredActivity>(found.content);
    if (!stored || !names(stored->hints, listed.name)) {
      remove_if_old(bucket, listed);
      return true;
    }
    // Equal times are sorted by namespace and id only when all of them are here.
    const bool enough = std::ssize(rows) >= limit && (rows.empty() || *rows.back().next_due < hint->time);
    if (hint->time > now || enough) {
      due.next_due = hint->time;
      return false;
    }
    rows.push_back(std::move(stored->value));
    return true;
  });
  std::sort(rows.begin(), rows.end(), [](const ActivityRow& a, const ActivityRow& b) {
    return std::tie(*a.next_due, a.name_space, a.id) < std::tie(*b.next_due, b.name_space, b.id);
  });
  if (std::ssize(rows) > limit) {
    due.next_due = rows[static_cast<std::size_t>(limit)].next_due;
    rows.resize(static_cast<std::size_t>(limit));
  }
  due.rows = std::move(rows);
  return due;
}

std::vector<ActivityRun> ActivityObjects::record(std::span<const ActivityRun> runs) {
  const CallDeadline deadline(timeout_);
  Bucket bucket(*objects_);
  std::vector<ActivityRun> recorded;
  for (const ActivityRun& run : runs) recorded.push_back(record_one(bucket, run));
  if (bucket.wrote()) changed_();
  return recorded;
}

std::vector<ActivityRun> ActivityObjects::runs(const RunFilter& filter) {
  const CallDeadline deadline(timeout_);
  Bucket bucket(*objects_);
  const std::string prefix = times_prefix(filter.name_space, filter.activity);
  std::vector<ActivityRun> runs;
  for_each_listed(bucket, prefix, [&](const Listed& listed) {
    const auto hint = parse_timed(listed.name, prefix);
    if (!hint) return true;
    const Time at = from_ms(kLastTime - to_ms(hint->time));
    if (filter.after && at > filter.after->at) return true;
    if (std::ssize(runs) >= filter.limit && (runs.empty() || at < runs.back().at)) return false;
    const std::string name = firing_name(hint->rest);
    const Found found = bucket.look({&name, 1}).front();
    if (!found.exists()) return true;
    StoredRun stored = Reader::object<StoredRun>(found.content);
    const ActivityRun& run = stored.value;
    const bool after =
        !filter.after || std::tie(run.at, run.occurrence) < std::tie(filter.after->at, filter.after->occurrence);
    if (names(stored.hints, listed.name) && after) runs.push_back(std::move(stored.value));
    return true;
  });
  std::sort(runs.begin(), runs.end(), is_newer);
  if (std::ssize(runs) > filter.limit) runs.resize(static_cast<std::size_t>(std::max(filter.limit, 0)));
  return runs;
}

std::int64_t ActivityObjects::purge_runs(Time before, std::int32_t limit) {
  const CallDeadline deadline(timeout_);
  struct Old {
    Time time;
    std::string name;
    Found found;
    StoredRun stored;
  };
  Bucket bucket(*objects_);
  std::vector<Old> old;
  for_each_listed(bucket, std::string(kFiringAges), [&](const Listed& listed) {
    const auto hint = parse_timed(listed.name, kFiringAges);
    if (!hint) return true;
    // Those of one instant go in the order of their names.
    const bool enough = std::ssize(old) >= limit && (old.empty() || old.back().time < hint->time);
    if (hint->time >= before || enough) return false;
    Old one{hint->time, firing_name(hint->rest), {}, {}};
    one.found = bucket.take({&one.name, 1}).front();
    if (one.found.exists()) one.stored = Reader::object<StoredRun>(one.found.content);
    if (names(one.stored.hints, listed.name)) {
      old.push_back(std::move(one));
    } else {
      remove_if_old(bucket, listed);
    }
    return true;
  });
  std::sort(old.begin(), old.end(), [](const Old& one, const Old& other) {
    const ActivityRun &a = one.stored.value, &b = other.stored.value;
    return std::tie(one.time, a.name_space, a.activity, a.occurrence) <
           std::tie(other.time, b.name_space, b.activity, b.occurrence);
  });
  std::int64_t purged = 0;
  for (const Old& one : old) {
    if (purged >= limit) break;
    if (!bury(bucket, one.name, one.found)) continue;
    bucket.remove_leftovers(one.stored.hints);
    ++purged;
  }
  if (bucket.wrote()) changed_();
  return purged;
}

}  // namespace hapax::s3
