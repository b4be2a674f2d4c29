#include "engine/activity_record.h"

#include "core/failure.h"
#include "core/field.h"
#include "core/json_writer.h"

namespace hapax {

namespace {

void write_time(JsonWriter& writer, std::string_view name, const std::optional<Time>& time) {
  if (time) writer.key(name).integer(to_ms(*time));
}

std::optional<Time> read_time(FieldReader& reader, std::string_view name) {
  const auto ms = reader.integer(name, 0, INT64_MAX);
  return ms ? std::optional(from_ms(*ms)) : std::nullopt;
}

void write_window(JsonWriter& writer, std::string_view name, const std::optional<Window>& window) {
  if (!window) return;
  writer.key(name).begin_object();
  write_time(writer, "from", window->from);
  write_time(writer, "to", window->to);
  writer.key("missed").integer(window->missed).end_object();
}

std::optional<Window> read_window(FieldReader& reader, std::string_view name) {
  const Json* object = reader.object(name);
  if (!object) return std::nullopt;
  FieldReader fields(*object, reader.pointer(name));
  return Window{fields.required("from", read_time(fields, "from")), fields.required("to", read_time(fields, "to")),
                fields.required("missed", fields.integer("missed", 0, INT64_MAX))};
}

void write_planned(JsonWriter& writer, const PlannedRun& run) {
  writer.begin_object();
  write_time(writer, "scheduled_for", run.scheduled_for);
  writer.key("disposition").string(to_string(run.disposition));
  writer.key("start").boolean(run.start);
  writer.key("workflow_id").string(run.workflow_id);
  write_window(writer, "window", run.window);
  writer.key("why").string(run.why);
  writer.end_object();
}

PlannedRun read_planned(const Json& object, const std::string& at) {
  FieldReader fields(object, at);
  PlannedRun run;
  run.scheduled_for = fields.required("scheduled_for", read_time(fields, "scheduled_for"));
  run.disposition = fields.required("disposition", fields.word("disposition", parse_disposition, "the dispositions"));
  run.start = fields.required("start", fields.boolean("start"));
  run.workflow_id = fields.required("workflow_id", fields.string("workflow_id"));
  run.window = read_window(fields, "window");
  run.why = fields.required("why", fields.string("why"));
  return run;
}

// An earlier version accepted a strategy with an event trigger, too.
Json without_meaningless(Json settings) {
  const Json* trigger = settings.find("trigger");
  if (trigger && trigger->find("event")) {
    std::erase_if(settings.members, [](const auto& member) { return member.first == "dedupe_key_strategy"; });
  }
  return settings;
}

}  // namespace

ActivityRecord ActivityRecord::parse(const ActivityRow& row) {
  ActivityRecord record;
  record.name_space = row.name_space;
  record.id = row.id;
  record.next_due = row.next_due;
  record.revision = row.revision;
  try {
    const Json document = parse_json(row.document);
    FieldReader fields(document);
    const Json* settings = fields.object("settings");
    const Json* position = fields.object("position");
    const Json* pending = fields.array("pending");
    if (!settings || !position || !pending) throw InvalidField("", "is no activity");
    record.settings = ActivitySettings::parse(without_meaningless(*settings), "/settings");
    record.position = SchedulePosition::parse(*position, "/position");
    for (const Json& run : pending->items) record.pending.push_back(read_planned(run, "/pending"));
    record.created_at = fields.required("created_at", read_time(fields, "created_at"));
    record.open_run = fields.string("open_run").value_or("");
    record.updated_at = fields.required("updated_at", read_time(fields, "updated_at"));
  } catch (const std::runtime_error& error) {
    throw Failure(Failure::Code::corrupt, "the activity '" + row.id + "' in the store cannot be read: " + error.what());
  }
  return record;
}

ActivityRun ledger_row(const ActivityRecord& record, const PlannedRun& planned) {
  ActivityRun run;
  run.name_space = record.name_space;
  run.activity = record.id;
  run.occurrence = format_occurrence(planned.scheduled_for);
  run.cause = Cause::schedule;
  run.at = planned.scheduled_for;
  run.disposition = planned.disposition;
  run.workflow_id = planned.workflow_id;
  run.window = planned.window;
  run.why = planned.why;
  return run;
}

ActivityRow ActivityRecord::row() const {
  JsonWriter writer;
  writer.begin_object().key("settings").raw(settings.to_json()).key("position").raw(position.to_json());
  writer.key("pending").begin_array();
  for (const PlannedRun& run : pending) write_planned(writer, run);
  writer.end_array();
  if (!open_run.empty()) writer.key("open_run").string(open_run);
  write_time(writer, "created_at", created_at);
  write_time(writer, "updated_at", updated_at);
  writer.end_object();
  return {name_space, id, writer.take(), settings.event() != nullptr, next_due, revision};
}

}  // namespace hapax
