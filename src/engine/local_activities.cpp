#include "engine/local_activities.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "core/field.h"
#include "engine/backfill.h"
#include "engine/check_request.h"
#include "engine/start_run.h"
#include "store/rules/activity_rules.h"

namespace hapax {

namespace {

constexpr std::string_view kFileNamespace = "default";
constexpr std::size_t kShown = 5;  // firings to come
constexpr int kMaxTries = 100;
constexpr std::int32_t kRunsPage = 1000;
constexpr Duration kClocksDiffer = std::chrono::minutes(1);  // between servers, at most; more is a wrong clock

// The page ends with this run.
std::string cursor_of(const ActivityRun& run) { return fmt::format("{}.{}", to_ms(run.at), run.occurrence); }

std::optional<RunFilter::Position> read_cursor(const std::string& cursor) {
  if (cursor.empty()) return std::nullopt;
  const auto dot = cursor.find('.');
  const std::string digits = cursor.substr(0, dot);
  const bool bad = dot == std::string::npos || digits.empty() || digits.size() > 15 ||
                   digits.find_first_not_of("0123456789") != std::string::npos;
  if (bad)
    throw InvalidField(InvalidField::Place::parameter, "cursor", "must be a \"next_cursor\" of an earlier answer");
  return RunFilter::Position{from_ms(std::stoll(digits)), cursor.substr(dot + 1)};
}

bool same_schedule(const ActivitySettings& before, const ActivitySettings& after) {
  return before.cron() && after.cron() && before.cron()->expression == after.cron()->expression &&
         before.cron()->timezone == after.cron()->timezone;
}

// The schedule starts over: another one, or one that was off.
bool begins_anew(const ActivityRecord& old, const ActivitySettings& settings) {
  return !same_schedule(old.settings, settings) || !old.settings.enabled;
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

LocalActivities::LocalActivities(Engine& engine, Store& store, const KnownSettings& settings,
                                 const EngineOptions& options, DeclareQueue declare_queue)
    : store_(store),
      options_(options),
      declare_queue_(std::move(declare_queue)),
      starter_(engine, store, settings, LaneLimits{.timeout = options.store_timeout}),
      schedules_(starter_, timer_, options_.fires),
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
    // Rising with time, so that a server that still holds a removed activity of this id cannot mistake this one for it.
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
    if (!is_new && begins_anew(record, settings)) {
      // If the clock ran ahead, what the same schedule has fired does not fire again; another schedule starts now.
      const Time fired = same_schedule(record.settings, settings) ? record.position.handled_until : now;
      const CronTrigger* trigger = record.settings.cron();
      if (trigger && record.settings.enabled && settings.cron()) record.position.leave(*trigger, now);
      record.position.begin_anew(id, std::max(now, fired));
    }
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
  check_activity(id);
  check(settings);
  refuse_if_from_file(name_space, id);
  return view(define(name_space, id, settings));
}

bool LocalActivities::remove(const std::string& name_space, const std::string& id) {
  check_activity(id);
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
  check_activity(id);
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
    // Not from now on, if the clock ran ahead before: those up to handled_until have fired.
    const Time from = std::max(store_.now(), record.position.handled_until);
    if (from > store_.now() + kClocksDiffer) view.fired_ahead_until = from;
    for (auto at = cron.next(from, zone); at && view.next.size() < kShown; at = cron.next(*at, zone)) {
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
  check_activity(id);
  const auto record = load(name_space, id);
  return record ? std::optional(view(*record)) : std::nullopt;
}

ActivitiesPage LocalActivities::list(const std::string& name_space, const std::string& after, std::int32_t limit) {
  check_page_limit(limit);
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
  check_activity(id);
  check_page_limit(limit);
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

namespace {

// For each run, whether it was started now. Another workflow with the id, of an earlier definition of this activity,
// counts as the run.
std::vector<bool> created_by(const std::vector<SubmitResult>& results) {
  std::vector<bool> created;
  for (const SubmitResult& result : results) {
    const auto* refusal = std::get_if<Refusal>(&result);
    if (refusal && refusal->code == Refusal::Code::store_corrupt)
      throw Failure(Failure::Code::corrupt, refusal->message);
    if (refusal && refusal->code != Refusal::Code::idempotency_conflict)
      throw InvalidField(refusal->pointer, refusal->message);
    created.push_back(!refusal && std::get<Receipt>(result).created);
  }
  return created;
}

}  // namespace

// Starts what is missing, then records it: the ledger never names a run that does not exist. Returns what the ledger
// says; for what was not started now, `duplicate`; for what was, why.
void LocalActivities::start_and_record(const std::string& name_space, std::vector<SubmitRequest> requests,
                                       std::vector<ActivityRun> runs, Reply<std::vector<ActivityRun>> reply) {
  std::vector<bool> again;
  for (const SubmitRequest& request : requests) again.push_back(request.reuse == Reuse::allow_closed);
  const auto tell = [reply](const std::vector<bool>& created, const std::vector<ActivityRun>& sent,
                            std::vector<ActivityRun> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (created[i]) rows[i].why = sent[i].why;
      if (!created[i]) rows[i].disposition = Disposition::duplicate;
    }
    reply(std::move(rows));
  };
  const auto record = [this, runs = std::move(runs), again = std::move(again), reply,
                       tell](Answer<std::vector<SubmitResult>> answer) mutable {
    try {
      std::vector<bool> created = created_by(std::move(answer).get());
      for (std::size_t i = 0; i < runs.size(); ++i) {
        // Its run is still open: the row of that run stays.
        if (!created[i] && again[i]) runs[i].disposition = Disposition::duplicate;
      }
      starter_.record(
          runs, [created = std::move(created), sent = runs, reply, tell](Answer<std::vector<ActivityRun>> recorded) {
            try {
              tell(created, sent, std::move(recorded).get());
            } catch (...) {
              reply(std::current_exception());
            }
          });
    } catch (...) {
      reply(std::current_exception());
    }
  };
  starter_.start(name_space, std::move(requests), record);
}

void LocalActivities::trigger(const std::string& name_space, const std::string& id,
                              const std::optional<std::string>& request_key, Reply<std::optional<Triggered>> reply) {
  check_activity(id);
  if (request_key) check_control_key(*request_key);
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

std::vector<ActivityRun> LocalActivities::runs_between(const std::string& name_space, const std::string& id, Time from,
                                                       Time to) {
  RunFilter filter;
  filter.name_space = name_space;
  filter.activity = id;
  filter.after = RunFilter::Position{to + Duration(1), ""};
  filter.limit = kRunsPage;
  std::vector<ActivityRun> found;
  for (;;) {
    std::vector<ActivityRun> page = store_.activities().runs(filter);
    const bool last = page.size() < static_cast<std::size_t>(kRunsPage) || page.back().at < from;
    if (!last) filter.after = RunFilter::Position{page.back().at, page.back().occurrence};
    std::move(page.begin(), page.end(), std::back_inserter(found));
    if (last) return found;
  }
}

void LocalActivities::backfill(const std::string& name_space, const std::string& id, const Backfill& wanted,
                               Reply<std::optional<std::vector<ActivityRun>>> reply) {
  check_activity(id);
  const auto record = load(name_space, id);
  if (!record) return reply(std::optional<std::vector<ActivityRun>>());
  const CronTrigger* trigger = record->settings.cron();
  if (!trigger) {
    throw InvalidField(InvalidField::Place::parameter, "id", "names an activity that has no schedule: events start it");
  }
  if (wanted.to < wanted.from) throw InvalidField("/to", "must not be before \"from\"");
  if (wanted.to > store_.now())
    throw InvalidField("/to", "must not be in the future: the schedule itself fires what is to come");
  const auto [cron, zone] = schedule_of(*trigger);
  const auto firings = plan_backfill(*record, cron, zone, wanted, runs_between(name_space, id, wanted.from, wanted.to));
  std::vector<ActivityRun> answer, started;
  std::vector<std::size_t> places;  // of what is started, in the answer
  std::vector<SubmitRequest> requests;
  for (const BackfilledFiring& firing : firings) {
    answer.push_back(firing.run);
    if (!firing.start) continue;
    places.push_back(answer.size() - 1);
    started.push_back(firing.run);
    requests.push_back(run_request(id, record->settings, firing.run.occurrence, {.scheduled_for = firing.run.at}));
    if (firing.again) requests.back().reuse = Reuse::allow_closed;
  }
  start_and_record(name_space, std::move(requests), std::move(started),
                   [answer = std::move(answer), places = std::move(places),
                    reply = std::move(reply)](Answer<std::vector<ActivityRun>> recorded) mutable {
                     try {
                       std::vector<ActivityRun> rows = std::move(recorded).get();
                       for (std::size_t i = 0; i < rows.size(); ++i) answer[places[i]] = std::move(rows[i]);
                       reply(std::optional(std::move(answer)));
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
