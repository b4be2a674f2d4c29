#include "wire/activity.h"

#include <algorithm>
#include <array>

#include "core/canonical_json.h"
#include "core/field.h"
#include "wire/read_member.h"

namespace hapax::wire {

namespace {

// What an activity's view has besides the members of its settings.
constexpr std::array<std::string_view, 9> kBesideSettings{
    "id", "paused", "paused_at", "from_file", "created_at", "updated_at", "next", "fired_ahead_until", "last"};

void time_or_null(JsonWriter& out, const std::optional<Time>& time) {
  time ? out.string(format_time(*time)) : out.null();
}

void text_or_null(JsonWriter& out, const std::optional<std::string>& text) { text ? out.string(*text) : out.null(); }

void write_strings(JsonWriter& out, const std::vector<std::string>& texts) {
  out.begin_array();
  for (const std::string& text : texts) out.string(text);
  out.end_array();
}

std::string read_string(const Json& document) {
  if (!document.is(Json::Kind::string)) malformed("id");
  return document.text;
}

Time read_time(const Json& document) {
  const auto time = parse_time(document.text);
  if (!document.is(Json::Kind::string) || !time) malformed("next");
  return *time;
}

ActivitySettings read_settings(Json document) {
  std::erase_if(document.members, [](const auto& member) {
    return std::find(kBesideSettings.begin(), kBesideSettings.end(), member.first) != kBesideSettings.end();
  });
  try {
    return ActivitySettings::parse(document);
  } catch (const InvalidField& error) {
    malformed(error.pointer());
  }
}

Window read_window(const Json& document) {
  return {required(document, "from", parse_time), required(document, "to", parse_time), integer(document, "missed", 0)};
}

void write_run_array(JsonWriter& out, std::span<const ActivityRun> runs) {
  out.begin_array();
  for (const ActivityRun& run : runs) write_run(out, run);
  out.end_array();
}

// The part of a workflow id that names the firing: the part before the first colon names the activity.
std::string occurrence_of(const std::string& workflow_id) {
  const auto colon = workflow_id.find(':');
  return colon == std::string::npos ? std::string() : workflow_id.substr(colon + 1);
}

// The object is left open.
void begin_activity(JsonWriter& out, const ActivityView& activity) {
  ActivitySettings named = activity.settings;
  if (named.name.empty()) named.name = activity.id;
  const std::string settings = named.to_json();
  out.begin_object().key("id").string(activity.id);
  out.raw(std::string_view(settings).substr(1, settings.size() - 2));  // its members, without the braces
  out.key("paused").boolean(activity.paused);
  out.key("paused_at");
  time_or_null(out, activity.paused_at);
  out.key("from_file").boolean(activity.from_file);
  out.key("created_at").string(format_time(activity.created_at));
  out.key("updated_at").string(format_time(activity.updated_at));
  out.key("next").begin_array();
  for (const Time time : activity.next) out.string(format_time(time));
  out.end_array();
  out.key("fired_ahead_until");
  time_or_null(out, activity.fired_ahead_until);
}

EventReceipt read_event_receipt(const Json& document) {
  EventReceipt receipt;
  receipt.id = required_text(document, "id");
  receipt.id_assigned = flag(document, "id_assigned");
  receipt.started = read_all(document, "started", read_string);
  receipt.duplicates = read_all(document, "duplicates", read_string);
  receipt.conflicts = read_all(document, "conflicts", read_string);
  return receipt;
}

}  // namespace

void write_activity(JsonWriter& out, const ActivityView& activity) {
  begin_activity(out, activity);
  out.key("last");
  write_run_array(out, activity.last);
  out.end_object();
}

ActivityView read_activity(const Json& document) {
  ActivityView view;
  view.id = required_text(document, "id");
  view.settings = read_settings(document);
  view.paused = flag(document, "paused");
  view.paused_at = parsed(document, "paused_at", parse_time);
  view.from_file = flag(document, "from_file");
  view.created_at = required(document, "created_at", parse_time);
  view.updated_at = required(document, "updated_at", parse_time);
  view.next = read_all(document, "next", read_time);
  view.fired_ahead_until = parsed(document, "fired_ahead_until", parse_time);
  if (document.find("last")) view.last = read_all(document, "last", read_run);
  for (ActivityRun& run : view.last) run.activity = view.id;
  return view;
}

void write_activities(JsonWriter& out, const ActivitiesPage& page) {
  out.begin_object().key("activities").begin_array();
  for (const ActivityView& activity : page.activities) {
    begin_activity(out, activity);
    out.end_object();
  }
  out.end_array().key("next_cursor");
  text_or_null(out, page.next_cursor);
  out.end_object();
}

ActivitiesPage read_activities(const Json& document) {
  return {read_all(document, "activities", read_activity), text(document, "next_cursor")};
}

void write_run(JsonWriter& out, const ActivityRun& run) {
  out.begin_object().key("workflow_id");
  run.workflow_id.empty() ? out.null() : out.string(run.workflow_id);
  switch (run.cause) {
    case Cause::schedule: out.key("scheduled_for").string(format_time(run.at)); break;
    case Cause::event:
      out.key("event_id").string(run.event ? run.event->id : run.occurrence);
      if (run.event) out.key("event_source").string(run.event->source);
      break;
    case Cause::trigger: out.key("triggered_at").string(format_time(run.at)); break;
  }
  out.key("disposition").string(to_string(run.disposition));
  out.key("window");
  if (run.window) {
    out.begin_object().key("from").string(format_time(run.window->from)).key("to").string(format_time(run.window->to));
    out.key("missed").integer(run.window->missed).end_object();
  } else {
    out.null();
  }
  out.key("why").string(run.why);
  out.key("recorded_at").string(format_time(run.recorded_at));
  out.end_object();
}

ActivityRun read_run(const Json& document) {
  ActivityRun run;
  run.workflow_id = text(document, "workflow_id").value_or("");
  run.disposition = required(document, "disposition", parse_disposition);
  if (const Json* window = present(document, "window")) run.window = read_window(*window);
  run.why = text(document, "why").value_or("");
  run.recorded_at = required(document, "recorded_at", parse_time);
  if (const auto scheduled_for = parsed(document, "scheduled_for", parse_time)) {
    run.at = *scheduled_for;
    run.occurrence = format_occurrence(run.at);
  } else if (auto event_id = text(document, "event_id")) {
    run.cause = Cause::event;
    run.at = run.recorded_at;
    run.occurrence = run.workflow_id.empty() ? *event_id : occurrence_of(run.workflow_id);
    if (auto source = text(document, "event_source")) {
      run.event = FiringEvent{*std::move(event_id), *std::move(source), {}};
    }
  } else {
    run.cause = Cause::trigger;
    run.at = required(document, "triggered_at", parse_time);
    run.occurrence = occurrence_of(run.workflow_id);
  }
  return run;
}

void write_runs(JsonWriter& out, std::span<const ActivityRun> runs) {
  out.begin_object().key("runs");
  write_run_array(out, runs);
  out.end_object();
}

void write_runs(JsonWriter& out, const RunsPage& page) {
  out.begin_object().key("runs");
  write_run_array(out, page.runs);
  out.key("next_cursor");
  text_or_null(out, page.next_cursor);
  out.end_object();
}

RunsPage read_runs(const Json& document) {
  return {read_all(document, "runs", read_run), text(document, "next_cursor")};
}

void write_triggered(JsonWriter& out, const Triggered& triggered) {
  out.begin_object().key("workflow_id").string(triggered.workflow_id).key("created").boolean(triggered.created);
  out.key("idempotency_replayed").boolean(!triggered.created).end_object();
}

Triggered read_triggered(const Json& document) {
  return {required_text(document, "workflow_id"), flag(document, "created")};
}

void write_event_receipts(JsonWriter& out, std::span<const EventReceipt> receipts) {
  out.begin_object().key("events");
  write_event_array(out, receipts);
  out.end_object();
}

void write_event_array(JsonWriter& out, std::span<const EventReceipt> receipts) {
  out.begin_array();
  for (const EventReceipt& receipt : receipts) {
    out.begin_object().key("id").string(receipt.id).key("id_assigned").boolean(receipt.id_assigned);
    out.key("started");
    write_strings(out, receipt.started);
    out.key("duplicates");
    write_strings(out, receipt.duplicates);
    out.key("conflicts");
    write_strings(out, receipt.conflicts);
    out.end_object();
  }
  out.end_array();
}

std::vector<EventReceipt> read_event_receipts(const Json& document) {
  return read_all(document, "events", read_event_receipt);
}

std::string write_backfill(const Backfill& wanted) {
  JsonWriter out;
  out.begin_object().key("from").string(format_time(wanted.from)).key("to").string(format_time(wanted.to));
  if (wanted.force) out.key("force").boolean(true);
  out.end_object();
  return out.take();
}

std::string write_events(std::span<const CloudEvent> events) {
  JsonWriter out;
  out.begin_array();
  for (const CloudEvent& event : events) out.raw(canonical_json(event.document));
  out.end_array();
  return out.take();
}

}  // namespace hapax::wire
