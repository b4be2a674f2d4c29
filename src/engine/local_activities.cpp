#include "engine/local_activities.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/field.h"
#include "engine/start_run.h"
#include "store/activity_rules.h"

namespace hapax {

namespace {

constexpr std::string_view kFileNamespace = "default";
constexpr std::size_t kShown = 5;  // firings to come
constexpr int kMaxTries = 100;

// The page ends with this run.
std::string cursor_of(const ActivityRun& run) { return fmt::format("{}.{}", to_ms(run.at), run.occurrence); }

std::optional<RunFilter::Position> read_cursor(const std::string& cursor) {
  if (cursor.empty()) return std::nullopt;
  const auto dot = cursor.find('.');
  const std::string digits = cursor.substr(0, dot);
  const bool bad = dot == std::string::npos || digits.empty() || digits.size() > 15 ||
                   digits.find_first_not_of("0123456789") != std::string::npos;
  if (bad) throw InvalidField("", "is no cursor that an earlier page gave");
  return RunFilter::Position{from_ms(std::stoll(digits)), cursor.substr(dot + 1)};
}

// The schedule begins anew: another one, or one that was off.
bool begins_anew(const ActivityRecord& old, const ActivitySettings& settings) {
  const CronTrigger* before = old.settings.cron();
  const CronTrigger* after = settings.cron();
  if (!before || !after) return true;
  return before->expression != after->expression || before->timezone != after->timezone || !old.settings.enabled;
}

struct Schedule {
  Cron cron;
  TimeZone zone;
};

Schedule schedule_of(const CronTrigger& trigger) {
  const auto zone = TimeZone::find(trigger.timezone);
  if (!zone) throw Failure(Failure::Code::corrupt, "the time zone " + trigger.timezone + " is not known here");
  return {std::get<Cron>(Cron::parse(trigger.expression)), *zone};
}

}  // namespace

LocalActivities::LocalActivities(Engine& engine, Store& store, const SettingsBook& settings,
                                 const EngineOptions& options, DeclareQueue declare_queue)
    : store_(store),
      options_(options),
      declare_queue_(std::move(declare_queue)),
      starter_(engine, store, settings, LaneLimits{.timeout = options.store_timeout}),
      schedules_(starter_, timer_),
      delivery_(starter_),
      task_lists_(engine, settings, timer_) {}

void LocalActivities::start() {
  take_over_file();
  schedules_.start();
  task_lists_.look();
}

void LocalActivities::stop() {
  timer_.stop();
  task_lists_.stop();
  starter_.stop();
}

void LocalActivities::settings_changed() { task_lists_.look(); }

void LocalActivities::store_replaced() {
  take_over_file();
  schedules_.due_by(store_.now());
  task_lists_.look();
}

void LocalActivities::take_over_file() {
  for (const auto& [id, settings] : options_.activities) define(std::string(kFileNamespace), id, settings);
}

// ---- define

std::optional<ActivityRecord> LocalActivities::load(const std::string& name_space, const std::string& id) {
  const auto row = store_.activities().find(name_space, id);
  return row ? std::optional(ActivityRecord::parse(*row)) : std::nullopt;
}

ActivityRecord LocalActivities::change(const std::string& name_space, const std::string& id, const Edit& edit) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    auto record = load(name_space, id);
    if (!record) {
      record.emplace();
      record->name_space = name_space;
      record->id = id;
    }
    if (!edit(*record)) return *std::move(record);
    const bool busy = record->is_scheduled() || !record->pending.empty();
    record->next_due = busy ? std::optional(store_.now()) : std::nullopt;
    // Rising with the time, so that whoever still holds a removed activity of this id cannot take this one for it.
    const ActivityChange change{record->row(), false, to_ms(store_.now())};
    if (store_.activities().change(std::span(&change, 1)).front()) {
      record->revision = next_revision(change);
      if (record->next_due) schedules_.due_by(*record->next_due);
      return *std::move(record);
    }
  }
  throw Failure(Failure::Code::unavailable, "the activity '" + id + "' is being changed by many at once");
}

ActivityRecord LocalActivities::define(const std::string& name_space, const std::string& id,
                                       const ActivitySettings& settings) {
  if (!std::holds_alternative<ActivitySettings::Workflow>(settings.start)) {
    declare_queue_(name_space, std::string(kTaskListQueue));
  }
  ActivityRecord defined = change(name_space, id, [&](ActivityRecord& record) {
    const Time now = store_.now();
    const bool is_new = record.revision == 0;
    if (!is_new && record.settings == settings) return false;
    if (is_new) record.position.handled_until = now;
    if (!is_new && begins_anew(record, settings)) record.position.begin_anew(id, now);
    if (is_new) record.created_at = now;
    record.updated_at = now;
    record.settings = settings;
    return true;
  });
  delivery_.forget(name_space);
  return defined;
}

bool LocalActivities::is_from_file(const std::string& name_space, const std::string& id) const {
  return name_space == kFileNamespace && options_.activities.contains(id);
}

void LocalActivities::refuse_if_from_file(const std::string& name_space, const std::string& id) const {
  if (!is_from_file(name_space, id)) return;
  throw DecidedByFile(fmt::format(
      "The configuration file has [activities.{}], and the file wins: change it there, and restart the server", id));
}

ActivityView LocalActivities::put(const std::string& name_space, const std::string& id,
                                  const ActivitySettings& settings) {
  check_activity_id(id);
  refuse_if_from_file(name_space, id);
  return view(define(name_space, id, settings));
}

bool LocalActivities::remove(const std::string& name_space, const std::string& id) {
  refuse_if_from_file(name_space, id);
  for (;;) {
    const auto row = store_.activities().find(name_space, id);
    if (!row) return false;
    const ActivityChange change{*row, true};
    if (store_.activities().change(std::span(&change, 1)).front()) break;
  }
  delivery_.forget(name_space);
  return true;
}

std::optional<ActivityView> LocalActivities::set_paused(const std::string& name_space, const std::string& id,
                                                        bool paused) {
  const ActivityRecord record = change(name_space, id, [&](ActivityRecord& found) {
    if (found.revision == 0 || found.position.paused() == paused) return false;
    found.updated_at = store_.now();
    paused ? found.position.pause(found.updated_at) : found.position.unpause(found.updated_at);
    return true;
  });
  if (record.revision == 0) return std::nullopt;
  delivery_.forget(name_space);
  return view(record);
}

// ---- look

ActivityView LocalActivities::view(const ActivityRecord& record, std::int32_t shown_runs) const {
  ActivityView view;
  view.id = record.id;
  view.settings = record.settings;
  view.paused = record.position.paused();
  if (view.paused) view.paused_at = record.position.paused_from;
  view.from_file = is_from_file(record.name_space, record.id);
  view.created_at = record.created_at;
  view.updated_at = record.updated_at;
  if (record.is_scheduled()) {
    const auto [cron, zone] = schedule_of(*record.settings.cron());
    for (auto at = cron.next(store_.now(), zone); at && view.next.size() < kShown; at = cron.next(*at, zone)) {
      view.next.push_back(*at);
    }
  }
  if (shown_runs > 0) {
    RunFilter filter;
    filter.name_space = record.name_space;
    filter.activity = record.id;
    filter.limit = shown_runs;
    view.last = store_.activities().runs(filter);
  }
  return view;
}

std::optional<ActivityView> LocalActivities::find(const std::string& name_space, const std::string& id) {
  const auto record = load(name_space, id);
  return record ? std::optional(view(*record)) : std::nullopt;
}

ActivitiesPage LocalActivities::list(const std::string& name_space, const std::string& after, std::int32_t limit) {
  ActivityFilter filter;
  filter.name_space = name_space;
  filter.after = after;
  filter.limit = limit;
  ActivitiesPage page;
  for (const ActivityRow& row : store_.activities().list(filter)) {
    page.activities.push_back(view(ActivityRecord::parse(row), 0));
  }
  if (page.activities.size() == static_cast<std::size_t>(limit)) page.next_cursor = page.activities.back().id;
  return page;
}

std::optional<RunsPage> LocalActivities::runs(const std::string& name_space, const std::string& id,
                                              const std::string& cursor, std::int32_t limit) {
  RunFilter filter;
  filter.name_space = name_space;
  filter.activity = id;
  filter.after = read_cursor(cursor);
  filter.limit = limit;
  RunsPage page{store_.activities().runs(filter), {}};
  if (page.runs.empty() && !store_.activities().find(name_space, id)) return std::nullopt;
  if (page.runs.size() == static_cast<std::size_t>(limit)) page.next_cursor = cursor_of(page.runs.back());
  return page;
}

// ---- by hand

// Starts what is missing, then writes it down: the ledger never tells of a run that is not there. A row that says it ran before
// stays as it is; the answer says `duplicate` for it.
void LocalActivities::start_and_record(const std::string& name_space, std::vector<SubmitRequest> requests,
                                       std::vector<ActivityRun> runs, Reply<std::vector<ActivityRun>> reply) {
  starter_.start(
      name_space, std::move(requests),
      [this, runs = std::move(runs), reply = std::move(reply)](Answer<std::vector<SubmitResult>> answer) mutable {
        std::vector<bool> created;
        try {
          for (const SubmitResult& result : std::move(answer).get()) {
            if (const auto* refusal = std::get_if<Refusal>(&result)) {
              // Another workflow has the id, of this activity as it was before: it stands for this run.
              if (refusal->code == Refusal::Code::store_corrupt)
                throw Failure(Failure::Code::corrupt, refusal->message);
              if (refusal->code != Refusal::Code::idempotency_conflict) {
                throw InvalidField(refusal->pointer, refusal->message);
              }
            }
            const auto* receipt = std::get_if<Receipt>(&result);
            created.push_back(receipt && receipt->created);
          }
        } catch (...) {
          return reply(std::current_exception());
        }
        starter_.record(std::move(runs), [created = std::move(created),
                                          reply = std::move(reply)](Answer<std::vector<ActivityRun>> recorded) {
          try {
            std::vector<ActivityRun> rows = std::move(recorded).get();
            for (std::size_t i = 0; i < rows.size(); ++i) {
              if (!created[i]) rows[i].disposition = Disposition::duplicate;
            }
            reply(std::move(rows));
          } catch (...) {
            reply(std::current_exception());
          }
        });
      });
}

void LocalActivities::trigger(const std::string& name_space, const std::string& id,
                              const std::optional<std::string>& request_key, Reply<std::optional<Triggered>> reply) {
  const auto record = load(name_space, id);
  if (!record) return reply(std::optional<Triggered>());
  const Time now = store_.now();
  ActivityRun run;
  run.name_space = name_space;
  run.activity = id;
  run.occurrence = "trigger-" + (request_key ? *request_key : ids_.next(now).to_string());
  run.cause = Cause::trigger;
  run.at = now;
  run.workflow_id = activity_workflow_id(id, run.occurrence);
  run.why = "triggered by hand";
  std::vector<SubmitRequest> requests;
  requests.push_back(run_request(id, record->settings, run.occurrence, {}));
  start_and_record(name_space, std::move(requests), {run},
                   [workflow_id = run.workflow_id, reply = std::move(reply)](Answer<std::vector<ActivityRun>> answer) {
                     try {
                       const ActivityRun row = std::move(std::move(answer).get().front());
                       reply(std::optional(Triggered{workflow_id, row.disposition != Disposition::duplicate}));
                     } catch (...) {
                       reply(std::current_exception());
                     }
                   });
}

void LocalActivities::backfill(const std::string& name_space, const std::string& id, Time from, Time to,
                               Reply<std::optional<std::vector<ActivityRun>>> reply) {
  const auto record = load(name_space, id);
  if (!record) return reply(std::optional<std::vector<ActivityRun>>());
  const CronTrigger* trigger = record->settings.cron();
  if (!trigger) throw InvalidField("", "the activity has no schedule to fill up: events start it");
  if (to < from) throw InvalidField("/to", "must not be before \"from\"");
  if (to > store_.now())
    throw InvalidField("/to", "must not be in the future: the schedule itself fires what is to come");
  const auto [cron, zone] = schedule_of(*trigger);
  std::vector<SubmitRequest> requests;
  std::vector<ActivityRun> runs;
  for (auto at = cron.next(from - Duration(1), zone); at && *at <= to; at = cron.next(*at, zone)) {
    if (runs.size() == kMaxBackfill) {
      throw InvalidField(
          "/to", fmt::format("there are more than {} firings in between; \"to\": \"{}\" would be the last of so "
                             "many",
                             kMaxBackfill, format_time(runs.back().at)));
    }
    ActivityRun run;
    run.name_space = name_space;
    run.activity = id;
    run.occurrence = format_occurrence(*at);
    run.at = *at;
    run.disposition = Disposition::caught_up;
    run.workflow_id = activity_workflow_id(id, run.occurrence);
    run.why = "backfilled";
    requests.push_back(run_request(id, record->settings, run.occurrence, {}));
    runs.push_back(std::move(run));
  }
  start_and_record(name_space, std::move(requests), std::move(runs),
                   [reply = std::move(reply)](Answer<std::vector<ActivityRun>> answer) {
                     try {
                       reply(std::optional(std::move(answer).get()));
                     } catch (...) {
                       reply(std::current_exception());
                     }
                   });
}

void LocalActivities::deliver(const std::string& name_space, std::vector<CloudEvent> events,
                              Reply<std::vector<EventReceipt>> reply) {
  for (CloudEvent& event : events) {
    if (event.id.empty()) {
      event.assign_id(ids_.next(store_.now()).to_string());
      event.id_assigned = true;
    }
  }
  delivery_.deliver(name_space, std::move(events), std::move(reply));
}

}  // namespace hapax
