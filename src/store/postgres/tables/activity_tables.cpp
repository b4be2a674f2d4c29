#include "store/postgres/tables/activity_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/hash.h"
#include "store/postgres/tables/rows.h"
#include "store/rules/activity_rules.h"

namespace hapax::postgres {

namespace {

const Column kActivityColumns[] = {
    {"name_space", Type::bytea}, {"id", Type::bytea},      {"document", Type::bytea},
    {"by_event", Type::boolean}, {"next_due", Type::int8}, {"revision", Type::int8},
};
std::vector<Column> change_columns() {
  const Column kRemove[] = {{"remove", Type::boolean}, {"first_revision", Type::int8}};
  return std::span<const Column>(kActivityColumns) + std::span<const Column>(kRemove);
}

const Column kRunColumns[] = {
    {"firing", Type::bytea},     {"name_space", Type::bytea},   {"activity", Type::bytea},
    {"occurrence", Type::bytea}, {"cause", Type::int2},         {"at", Type::int8},
    {"disposition", Type::int2}, {"workflow_id", Type::bytea},  {"window_from", Type::int8},
    {"window_to", Type::int8},   {"window_missed", Type::int8}, {"why", Type::bytea},
    {"event_id", Type::bytea},   {"event_source", Type::bytea}, {"event_hash", Type::bytea},
};
constexpr int kNowParameter = static_cast<int>(std::size(kRunColumns)) + 1;

// Stable within a statement, so that an index can be searched by it.
std::string time_or_servers(int parameter) {
  return fmt::format("coalesce(${}::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)", parameter);
}

// As lookup() and lookup_place(), where two columns make the key.
constexpr const char* kLookup =
    "LATERAL (SELECT * FROM activities x WHERE x.name_space = g.name_space AND x.id = g.id OFFSET 0) a";
constexpr const char* kLookupPlace =
    "LATERAL (SELECT x.ctid AS place FROM activities x WHERE x.name_space = g.name_space AND x.id = g.id OFFSET 0) f";

const Statement kFind{"find_activity", "SELECT " + names(kActivityColumns) +
                                           " FROM activities WHERE name_space = $1::bytea AND id = $2::bytea"};

// In the order of their keys, so that two batches of the same activities wait for each other and not in a circle.
const Statement kChange{"change_activities",
                        fmt::format(R"sql(
WITH n AS MATERIALIZED (SELECT * FROM {unnest}),
made AS (
  INSERT INTO activities ({columns})
  SELECT g.name_space, g.id, g.document, g.by_event, g.next_due, g.first_revision FROM n g WHERE g.revision = 0 AND NOT g.remove
  ORDER BY g.name_space, g.id ON CONFLICT DO NOTHING RETURNING name_space, id),
changed AS (
  UPDATE activities a SET document = g.document, by_event = g.by_event, next_due = g.next_due, revision = a.revision + 1
  FROM (SELECT * FROM n WHERE revision > 0 AND NOT remove ORDER BY name_space, id) g, {place}
  WHERE a.ctid = f.place AND a.revision = g.revision RETURNING a.name_space, a.id),
removed AS (
  DELETE FROM activities a USING (SELECT * FROM n WHERE remove ORDER BY name_space, id) g, {place}
  WHERE a.ctid = f.place AND a.revision = g.revision RETURNING a.name_space, a.id)
SELECT * FROM made UNION ALL SELECT * FROM changed UNION ALL SELECT * FROM removed)sql",
                                    fmt::arg("unnest", unnest(change_columns(), 1, "u")),
                                    fmt::arg("columns", names(kActivityColumns)), fmt::arg("place", kLookupPlace))};

const Statement kFindAll{"find_activities",
                         fmt::format("SELECT {} FROM unnest($1::bytea[], $2::bytea[]) AS g (name_space, id), {}",
                                     names(kActivityColumns, "a"), kLookup)};

// One more than asked for, and the next one that is not due yet: the earliest of those that are not returned.
const Statement kDue{"due_activities",
                     fmt::format(R"sql(
SELECT * FROM (
  (SELECT {columns}, true AS is_due FROM activities WHERE next_due IS NOT NULL AND next_due <= {now}
   ORDER BY next_due, name_space, id LIMIT $2::int8 + 1)
  UNION ALL
  (SELECT name_space, id, ''::bytea, by_event, next_due, revision, false FROM activities
   WHERE next_due IS NOT NULL AND next_due > {now} ORDER BY next_due, name_space, id LIMIT 1)) d
ORDER BY next_due, name_space, id)sql",
                                 fmt::arg("columns", names(kActivityColumns)), fmt::arg("now", time_or_servers(1)))};

const Statement kRecord{"record_runs", fmt::format("INSERT INTO activity_runs ({}, recorded_at) SELECT {}, {} FROM {}"
                                                   " ORDER BY g.firing ON CONFLICT DO NOTHING",
                                                   names(kRunColumns), names(kRunColumns, "g"),
                                                   time_or_servers(kNowParameter), unnest(kRunColumns, 1, "g"))};
const Statement kMakeUp{
    "make_up_runs",
    fmt::format("UPDATE activity_runs r SET cause = g.cause, at = g.at, disposition = g.disposition,"
                " workflow_id = g.workflow_id, window_from = g.window_from, window_to = g.window_to,"
                " window_missed = g.window_missed, why = g.why, event_id = g.event_id, event_source = g.event_source,"
                " event_hash = g.event_hash, recorded_at = {now} FROM (SELECT * FROM {batch}"
                " WHERE u.disposition = {caught_up} ORDER BY u.firing) g, {place}"
                " WHERE r.ctid = f.place AND r.disposition IN ({skipped}, {compressed})",
                fmt::arg("now", time_or_servers(kNowParameter)), fmt::arg("batch", unnest(kRunColumns, 1, "u")),
                fmt::arg("place", lookup_place("activity_runs", "firing", "g.firing", "f")),
                fmt::arg("caught_up", static_cast<int>(Disposition::caught_up)),
                fmt::arg("skipped", static_cast<int>(Disposition::skipped)),
                fmt::arg("compressed", static_cast<int>(Disposition::compressed)))};
const Statement kFindRuns{
    "find_runs",
    fmt::format("SELECT {}, recorded_at FROM activity_runs WHERE firing = ANY($1::bytea[])", names(kRunColumns))};

const Statement kRuns{"activity_runs",
                      fmt::format("SELECT {}, recorded_at FROM activity_runs WHERE name_space = $1::bytea"
                                  " AND activity = $2::bytea AND (at, occurrence) < ($3::int8, $4::bytea)"
                                  " ORDER BY at DESC, occurrence DESC LIMIT $5::int8",
                                  names(kRunColumns))};
const Statement kPurgeRuns{
    "purge_runs",
    "WITH gone AS (DELETE FROM activity_runs WHERE ctid = ANY(ARRAY(SELECT x.ctid FROM activity_runs x"
    " WHERE x.recorded_at < $1::int8 ORDER BY x.recorded_at, x.name_space, x.activity, x.occurrence LIMIT $2::int8"
    " FOR UPDATE SKIP LOCKED)) RETURNING 1) SELECT count(*) FROM gone"};

using Key = std::pair<std::string, std::string>;  // namespace, id

Key key_of(const ActivityChange& change) { return {change.row.name_space, change.row.id}; }
// With their lengths, so that no other three texts make the same.
Digest key_of(const ActivityRun& run) {
  return sha256(fmt::format("{}:{}{}:{}{}", run.name_space.size(), run.name_space, run.activity.size(), run.activity,
                            run.occurrence));
}
std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// One after the other: the places in the batch of what can be done at once, because nothing among it has the same key.
template <class Item>
std::vector<std::vector<std::size_t>> waves_of(std::span<const Item> items) {
  std::vector<std::vector<std::size_t>> waves;
  std::map<decltype(key_of(items[0])), std::size_t> met;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t wave = met[key_of(items[i])]++;
    if (wave == waves.size()) waves.emplace_back();
    waves[wave].push_back(i);
  }
  return waves;
}

ActivityRow read_activity(Cells& cells) {
  ActivityRow row;
  row.name_space = cells.text();
  row.id = cells.text();
  row.document = cells.text();
  row.by_event = cells.boolean();
  row.next_due = cells.time_if();
  row.revision = cells.integer();
  return row;
}

std::vector<ActivityRow> read_activities(const Rows& rows) {
  std::vector<ActivityRow> found;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    found.push_back(read_activity(cells));
  }
  return found;
}

Parameters write_changes(std::span<const ActivityChange> changes, const std::vector<std::size_t>& chosen) {
  Columns columns(change_columns());
  for (const std::size_t i : chosen) {
    const ActivityRow& row = changes[i].row;
    columns.begin_row();
    columns.next().bytes(row.name_space);
    columns.next().bytes(row.id);
    columns.next().bytes(changes[i].remove ? "" : row.document);
    columns.next().boolean(row.by_event);
    columns.next().time_if(row.next_due);
    columns.next().integer(row.revision);
    columns.next().boolean(changes[i].remove);
    columns.next().integer(changes[i].first_revision);
  }
  Parameters parameters;
  columns.bind(parameters);
  return parameters;
}

Parameters write_keys(std::span<const ActivityChange> changes, const std::vector<std::size_t>& chosen) {
  Array name_spaces(Type::bytea), ids(Type::bytea);
  for (const std::size_t i : chosen) {
    name_spaces.bytes(changes[i].row.name_space);
    ids.bytes(changes[i].row.id);
  }
  Parameters parameters;
  parameters.array(std::move(name_spaces)).array(std::move(ids));
  return parameters;
}

std::vector<ActivityRun> read_runs(const Rows& rows) {
  std::vector<ActivityRun> found;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    ActivityRun& run = found.emplace_back();
    cells.skip();
    run.name_space = cells.text();
    run.activity = cells.text();
    run.occurrence = cells.text();
    run.cause = cells.word<Cause>();
    run.at = cells.time();
    run.disposition = cells.word<Disposition>();
    run.workflow_id = cells.text();
    const std::optional<Time> from = cells.time_if(), to = cells.time_if();
    const std::optional<std::int64_t> missed = cells.integer_if();
    if (from && to) run.window = Window{*from, *to, missed.value_or(0)};
    run.why = cells.text();
    std::optional<std::string> event_id = cells.text_if(), event_source = cells.text_if();
    const auto event_hash = cells.raw_if<EventHash>();
    if (event_id && event_source && event_hash) {
      run.event = FiringEvent{*std::move(event_id), *std::move(event_source), *event_hash};
    }
    run.recorded_at = cells.time();
  }
  return found;
}

Parameters write_runs(std::span<const ActivityRun> runs, const std::vector<std::size_t>& chosen,
                      std::optional<std::int64_t> now) {
  Columns columns(kRunColumns);
  for (const std::size_t i : chosen) {
    const ActivityRun& run = runs[i];
    columns.begin_row();
    columns.next().bytes(bytes_of(key_of(run)));
    columns.next().bytes(run.name_space);
    columns.next().bytes(run.activity);
    columns.next().bytes(run.occurrence);
    columns.next().word(run.cause);
    columns.next().time(run.at);
    columns.next().word(run.disposition);
    columns.next().bytes(run.workflow_id);
    columns.next().time_if(run.window ? std::optional(run.window->from) : std::nullopt);
    columns.next().time_if(run.window ? std::optional(run.window->to) : std::nullopt);
    columns.next().integer_if(run.window ? std::optional(run.window->missed) : std::nullopt);
    columns.next().bytes(run.why);
    columns.next().bytes_if(run.event ? std::optional(run.event->id) : std::nullopt);
    columns.next().bytes_if(run.event ? std::optional(run.event->source) : std::nullopt);
    columns.next().raw_if(run.event ? std::optional(run.event->hash) : std::nullopt);
  }
  Parameters parameters;
  columns.bind(parameters);
  parameters.int8_if(now);
  return parameters;
}

Parameters write_firings(std::span<const ActivityRun> runs, const std::vector<std::size_t>& chosen) {
  Array firings(Type::bytea);
  for (const std::size_t i : chosen) firings.bytes(bytes_of(key_of(runs[i])));
  Parameters parameters;
  parameters.array(std::move(firings));
  return parameters;
}

Rows read_rows(Runner& runner, const Statement& statement, const Parameters& parameters) {
  return runner.read([&](Workspace& workspace) {
    workspace.connection().send(statement, parameters);
    workspace.now();
    return workspace.connection().receive();
  });
}

// Of the unchanged ones: which are as they should be, and which can be changed after all.
std::vector<std::size_t> judge_rest(Runner& runner, std::span<const ActivityChange> changes,
                                    const std::vector<std::size_t>& rest, std::vector<bool>& did) {
  std::map<Key, ActivityRow> stored;
  for (ActivityRow& row : read_activities(read_rows(runner, kFindAll, write_keys(changes, rest)))) {
    Key key(row.name_space, row.id);
    stored.emplace(std::move(key), std::move(row));
  }
  std::vector<std::size_t> again;
  for (const std::size_t i : rest) {
    const auto found = stored.find(key_of(changes[i]));
    const ActivityVerdict verdict = judge(changes[i], found == stored.end() ? nullptr : &found->second);
    did[i] = verdict == ActivityVerdict::done;
    if (verdict == ActivityVerdict::apply) again.push_back(i);
  }
  return again;
}

}  // namespace

const Statement& due_activities_statement() { return kDue; }
const Statement& runs_statement() { return kRuns; }

std::optional<ActivityRow> ActivityTables::find(const std::string& name_space, const std::string& id) {
  std::vector<ActivityRow> found = read_activities(read_rows(runner_, kFind, Parameters().bytes(name_space).bytes(id)));
  return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
}

std::vector<ActivityRow> ActivityTables::list(const ActivityFilter& filter) {
  check_filter(filter);
  std::string sql = fmt::format("SELECT {} FROM activities WHERE true", names(kActivityColumns));
  Parameters parameters;
  parameters.int8(std::max(filter.limit, 0));
  if (filter.name_space) {
    sql += " AND name_space = $2::bytea AND id > $3::bytea";
    parameters.bytes(*filter.name_space).bytes(filter.after);
  }
  if (filter.by_event) sql += *filter.by_event ? " AND by_event" : " AND NOT by_event";
  sql += " ORDER BY name_space, id LIMIT $1::int8";
  return runner_.read_aside([&](Workspace& workspace) {
    workspace.connection().send(sql, parameters);
    workspace.now();
    return read_activities(workspace.connection().receive());
  });
}

std::vector<bool> ActivityTables::change(std::span<const ActivityChange> changes) {
  std::vector<bool> did(changes.size());
  for (std::vector<std::size_t>& wave : waves_of(changes)) {
    while (!wave.empty()) {
      const Rows rows = runner_.run_at_once(kChange, write_changes(changes, wave));
      std::map<Key, bool> changed;
      for (int i = 0; i < rows.size(); ++i) {
        Cells cells(rows, i);
        std::string name_space = cells.text();
        changed[{std::move(name_space), cells.text()}] = true;
      }
      if (!changed.empty()) on_change_();
      std::erase_if(wave, [&](std::size_t i) { return did[i] = changed.contains(key_of(changes[i])); });
      if (!wave.empty()) wave = judge_rest(runner_, changes, wave, did);
    }
  }
  return did;
}

DueActivities ActivityTables::due(std::int32_t limit) {
  limit = std::max(limit, 0);
  Parameters parameters;
  parameters.int8_if(runner_.now_parameter()).int8(limit);
  const Rows rows = read_rows(runner_, kDue, parameters);
  DueActivities due;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    ActivityRow row = read_activity(cells);
    if (!cells.boolean() || std::ssize(due.rows) == limit) {
      due.next_due = row.next_due;
      break;
    }
    due.rows.push_back(std::move(row));
  }
  return due;
}

// A row that a purge deleted after it was met is recorded at the next try.
std::vector<ActivityRun> ActivityTables::record(std::span<const ActivityRun> runs) {
  std::vector<ActivityRun> recorded(runs.size());
  for (std::vector<std::size_t>& wave : waves_of(runs)) {
    while (!wave.empty()) {
      const bool makes_up = std::any_of(wave.begin(), wave.end(),
                                        [&](std::size_t i) { return runs[i].disposition == Disposition::caught_up; });
      const Rows rows = runner_.attempt([&](Connection& connection) {
        const Parameters parameters = write_runs(runs, wave, runner_.now_parameter());
        connection.begin_implicitly();
        connection.send_silently(kRecord, parameters);
        if (makes_up) connection.send_silently(kMakeUp, parameters);
        connection.send(kFindRuns, write_firings(runs, wave));
        return connection.receive_and_commit();
      });
      std::map<Digest, ActivityRun> stored;
      for (ActivityRun& run : read_runs(rows)) {
        const Digest firing = key_of(run);
        stored.emplace(firing, std::move(run));
      }
      std::erase_if(wave, [&](std::size_t i) {
        const auto found = stored.find(key_of(runs[i]));
        if (found == stored.end()) return false;
        recorded[i] = std::move(found->second);
        return true;
      });
    }
  }
  return recorded;
}

std::vector<ActivityRun> ActivityTables::runs(const RunFilter& filter) {
  const RunFilter::Position after = filter.after.value_or(RunFilter::Position{Time::max(), ""});
  Parameters parameters;
  parameters.bytes(filter.name_space).bytes(filter.activity).time(after.at).bytes(after.occurrence);
  parameters.int8(std::max(filter.limit, 0));
  return runner_.read_aside([&](Workspace& workspace) {
    workspace.connection().send(kRuns, parameters);
    workspace.now();
    return read_runs(workspace.connection().receive());
  });
}

std::int64_t ActivityTables::purge_runs(Time before, std::int32_t limit) {
  Parameters parameters;
  parameters.time(before).int8(std::max(limit, 0));
  const Rows rows = runner_.run_at_once(kPurgeRuns, parameters);
  return Cells(rows, 0).integer();
}

}  // namespace hapax::postgres
