#include "engine/start_run.h"

#include <utility>

#include "core/canonical_json.h"
#include "core/field.h"
#include "core/json_writer.h"

namespace hapax {

namespace {

void write_window(JsonWriter& writer, const Window& window) {
  writer.begin_object();
  writer.key("from").string(format_time(window.from));
  writer.key("to").string(format_time(window.to));
  writer.key("missed").integer(window.missed);
  writer.end_object();
}

void add_member(Json& object, std::string name, Json value) {
  std::erase_if(object.members, [&](const auto& member) { return member.first == name; });
  object.members.emplace_back(std::move(name), std::move(value));
}

// The activity's input, with the firing's data added as members. An input that is not an object moves into one for a
// window or an event; for the scheduled time alone it stays as it is.
Json input_of(const std::optional<std::string>& configured, const FiringInput& firing) {
  Json input;
  if (configured) input = parse_json(*configured);
  const bool takes_members = !configured || input.is(Json::Kind::object);
  if (!firing.window && !firing.event && !(firing.scheduled_for && takes_members)) return input;
  if (!input.is(Json::Kind::object)) {
    Json object;
    object.kind = Json::Kind::object;
    if (configured) add_member(object, "input", std::move(input));
    input = std::move(object);
  }
  if (firing.scheduled_for) {
    JsonWriter writer;
    writer.string(format_time(*firing.scheduled_for));
    add_member(input, "scheduled_for", parse_json(writer.text()));
  }
  if (firing.window) {
    JsonWriter writer;
    write_window(writer, *firing.window);
    add_member(input, "window", parse_json(writer.text()));
  }
  if (firing.event) add_member(input, "event", firing.event->document);
  return input;
}

Json task_list_input(const std::vector<ActivitySettings::Task>& tasks, const FiringInput& firing) {
  JsonWriter writer;
  writer.begin_object().key("tasks").begin_array();
  for (const ActivitySettings::Task& task : tasks) {
    writer.begin_object().key("type").string(task.type);
    writer.key("input").raw(canonical_json(input_of(task.input, firing)));
    if (task.queue) writer.key("queue").string(*task.queue);
    writer.end_object();
  }
  writer.end_array().end_object();
  return parse_json(writer.text());
}

// As input_of() has it: the event is a member.
Json signal_input(const ActivitySettings::Signal& signal, const FiringInput& firing) {
  JsonWriter writer;
  writer.begin_object().key("signal").begin_object();
  writer.key("workflow_id").string(signal.workflow_id).key("name").string(signal.name);
  return input_of(writer.end_object().end_object().take(), firing);
}

}  // namespace

SubmitRequest run_request(std::string_view activity, const ActivitySettings& settings, std::string_view occurrence,
                          const FiringInput& firing) {
  SubmitRequest request;
  request.kind = Kind::workflow;
  request.idempotency_key = activity_workflow_id(activity, occurrence);
  request.reuse = Reuse::reject;
  request.on_duplicate = OnDuplicate::give_back;
  if (const auto* workflow = std::get_if<ActivitySettings::Workflow>(&settings.start)) {
    request.type = workflow->type;
    request.queue = workflow->queue;
    request.input = input_of(workflow->input, firing);
  } else if (const auto* signal = std::get_if<ActivitySettings::Signal>(&settings.start)) {
    request.type = kSignalType;
    request.queue = kTaskListQueue;
    request.input = signal_input(*signal, firing);
  } else {
    request.type = kTaskListType;
    request.queue = kTaskListQueue;
    request.input = task_list_input(std::get<std::vector<ActivitySettings::Task>>(settings.start), firing);
  }
  return request;
}

std::optional<EventHash> event_of_run(const Execution& run) {
  const Json input = parse_json(run.input);
  const Json* event = run.type == kTaskListType ? input.at("/tasks/0/input/event") : input.find("event");
  if (!event) return std::nullopt;
  try {
    return CloudEvent::parse(*event).hash();
  } catch (const InvalidField&) {
    return std::nullopt;  // the activity's own input has a member of that name
  }
}

}  // namespace hapax
