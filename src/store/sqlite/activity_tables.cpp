#include "store/sqlite/activity_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/rules/activity_rules.h"

namespace hapax::sqlite {

namespace {

constexpr const char* kColumns = "name_space, id, document, by_event, next_due, revision";
constexpr const char* kRunColumns =
    "name_space, activity, occurrence, cause, at, disposition, workflow_id, window_from, window_to, window_missed,"
    " why, recorded_at, event_id, event_source, event_hash";

ActivityRow read_activity(const Run& run) {
  return {.name_space = std::string(run.text(0)),
          .id = std::string(run.text(1)),
          .document = std::string(run.text(2)),
          .by_event = run.int32(3) != 0,
          .next_due = run.time_if(4),
          .revision = run.int64(5)};
}

ActivityRun read_run(const Run& run) {
  ActivityRun read{.name_space = std::string(run.text(0)),
                   .activity = std::string(run.text(1)),
                   .occurrence = std::string(run.text(2)),
                   .cause = static_cast<Cause>(run.int32(3)),
                   .at = run.time(4),
                   .disposition = static_cast<Disposition>(run.int32(5)),
                   .workflow_id = std::string(run.text(6)),
                   .window = std::nullopt,
                   .event = std::nullopt,
                   .why = std::string(run.text(10)),
                   .recorded_at = run.time(11)};
  if (!run.is_null(7)) read.window = Window{run.time(7), run.time(8), run.int64(9)};
  if (!run.is_null(12)) {
    read.event = FiringEvent{std::string(run.text(12)), std::string(run.text(13)), run.bytes<EventHash>(14)};
  }
  return read;
}

}  // namespace

ActivityTables::ActivityTables(Connection& db)
    : connection_(db),
      find_(db, fmt::format("SELECT {} FROM hapax_activities WHERE name_space = ? AND id = ?", kColumns)),
      put_(db, fmt::format(
                   "INSERT INTO hapax_activities ({}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name_space, id) DO UPDATE"
                   " SET document = excluded.document, by_event = excluded.by_event,"
                   " next_due = excluded.next_due, revision = excluded.revision",
                   kColumns)),
      erase_(db, "DELETE FROM hapax_activities WHERE name_space = ? AND id = ?"),
      due_(db, fmt::format("SELECT {} FROM hapax_activities INDEXED BY hapax_due_activities"
                           " WHERE next_due IS NOT NULL AND next_due <= ? ORDER BY next_due, name_space, id LIMIT ?",
                           kColumns)),
      next_due_(db,
                "SELECT next_due FROM hapax_activities INDEXED BY hapax_due_activities WHERE next_due IS NOT NULL"
                " ORDER BY next_due LIMIT 1 OFFSET ?"),
      find_run_(
          db, fmt::format("SELECT {} FROM hapax_activity_runs WHERE name_space = ? AND activity = ? AND occurrence = ?",
                          kRunColumns)),
      put_run_(
          db,
          fmt::format(
              "INSERT OR REPLACE INTO hapax_activity_runs ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
              kRunColumns)),
      runs_(db, fmt::format("SELECT {} FROM hapax_activity_runs INDEXED BY hapax_activity_runs_by_time"
                            " WHERE name_space = ? AND activity = ? AND (at, occurrence) < (?, ?)"
                            " ORDER BY at DESC, occurrence DESC LIMIT ?",
                            kRunColumns)),
      purge_runs_(
          db,
          "DELETE FROM hapax_activity_runs WHERE (name_space, activity, occurrence) IN"
          " (SELECT name_space, activity, occurrence FROM hapax_activity_runs INDEXED BY hapax_activity_runs_by_age"
          " WHERE recorded_at < ? ORDER BY recorded_at, name_space, activity, occurrence LIMIT ?)") {}

std::optional<ActivityRow> ActivityTables::find(const std::string& name_space, const std::string& id) {
  Run run(find_);
  run.bind(name_space).bind(id);
  return run.next() ? std::optional(read_activity(run)) : std::nullopt;
}

std::vector<ActivityRow> ActivityTables::list(const ActivityFilter& filter) {
  check_filter(filter);
  std::string sql = fmt::format("SELECT {} FROM hapax_activities WHERE true", kColumns);
  if (filter.name_space) sql += " AND name_space = ?1 AND id > ?2";
  // Written out, so that SQLite sees that the partial index has them all.
  if (filter.by_event) sql += *filter.by_event ? " AND by_event = 1" : " AND by_event = 0";
  Statement statement(connection_, sql + " ORDER BY name_space, id LIMIT ?3");
  Run run(statement);
  run.bind(filter.name_space).bind(filter.after).bind(std::max(filter.limit, 0));
  std::vector<ActivityRow> found;
  while (run.next()) found.push_back(read_activity(run));
  return found;
}

bool ActivityTables::change(const ActivityChange& change) {
  const ActivityRow& row = change.row;
  const std::optional<ActivityRow> stored = find(row.name_space, row.id);
  const ActivityVerdict verdict = judge(change, stored ? &*stored : nullptr);
  if (verdict != ActivityVerdict::apply) return verdict == ActivityVerdict::done;
  if (change.remove) {
    Run(erase_).bind(row.name_space).bind(row.id).done();
  } else {
    Run run(put_);
    run.bind(row.name_space).bind(row.id).bind(row.document).bind(static_cast<std::int32_t>(row.by_event));
    run.bind(row.next_due).bind(next_revision(change)).done();
  }
  return true;
}

DueActivities ActivityTables::due(std::int32_t limit, Time now) {
  DueActivities due;
  Run run(due_);
  run.bind(now).bind(std::max(limit, 0));
  while (run.next()) due.rows.push_back(read_activity(run));
  Run next(next_due_);
  next.bind(static_cast<std::int64_t>(due.rows.size()));
  if (next.next()) due.next_due = next.time(0);
  return due;
}

ActivityRun ActivityTables::record(const ActivityRun& run, Time now) {
  {
    Run find(find_run_);
    find.bind(run.name_space).bind(run.activity).bind(run.occurrence);
    if (find.next()) {
      ActivityRun stored = read_run(find);
      if (!gives_way(stored.disposition, run.disposition)) return stored;
    }
  }
  ActivityRun recorded = run;
  recorded.recorded_at = now;
  Run put(put_run_);
  put.bind(run.name_space).bind(run.activity).bind(run.occurrence).bind(static_cast<std::int32_t>(run.cause));
  put.bind(run.at).bind(static_cast<std::int32_t>(run.disposition)).bind(run.workflow_id);
  if (run.window) {
    put.bind(run.window->from).bind(run.window->to).bind(run.window->missed);
  } else {
    put.bind(std::nullopt).bind(std::nullopt).bind(std::nullopt);
  }
  put.bind(run.why).bind(now);
  if (run.event) {
    put.bind(run.event->id).bind(run.event->source).bind(run.event->hash);
  } else {
    put.bind(std::nullopt).bind(std::nullopt).bind(std::nullopt);
  }
  put.done();
  return recorded;
}

std::vector<ActivityRun> ActivityTables::runs(const RunFilter& filter) {
  const RunFilter::Position after = filter.after.value_or(RunFilter::Position{Time::max(), ""});
  Run run(runs_);
  run.bind(filter.name_space).bind(filter.activity).bind(after.at).bind(after.occurrence);
  run.bind(std::max(filter.limit, 0));
  std::vector<ActivityRun> found;
  while (run.next()) found.push_back(read_run(run));
  return found;
}

std::int64_t ActivityTables::purge_runs(Time before, std::int32_t limit) {
  return Run(purge_runs_).bind(before).bind(std::max(limit, 0)).done();
}

}  // namespace hapax::sqlite
