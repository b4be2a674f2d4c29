#include "hapax/listing.h"

#include "hapax/app.h"
#include "sdk/app_state.h"
#include "wire/event.h"

namespace hapax {

namespace {

static_assert(static_cast<int>(api::Status::timed_out) == static_cast<int>(Status::timed_out));

std::string text_of(const std::optional<AttemptError>& error) {
  return error ? error->type + ": " + error->message : std::string();
}

TaskInfo task_info(const Execution& task) {
  return {.id = task.id.to_string(),
          .type = task.type,
          .queue = task.queue,
          .status = static_cast<api::Status>(task.status),
          .key = task.idempotency_key,
          .attempt = task.attempt,
          .last_error = text_of(task.error),
          .workflow_id = task.parent_workflow_id,
          .created_at = task.created_at,
          .run_at = task.run_at,
          .finished_at = task.finished_at};
}

WorkflowInfo workflow_info(const Execution& run) {
  return {.workflow_id = run.idempotency_key.value_or(""),
          .run_id = run.id.to_string(),
          .type = run.type,
          .queue = run.queue,
          .status = static_cast<api::Status>(run.status),
          .last_error = text_of(run.error),
          .created_at = run.created_at,
          .finished_at = run.finished_at};
}

template <class Info, class Convert>
Listing<Info> listing(std::shared_ptr<detail::AppState> app, ListFilter filter, Convert convert) {
  filter.name_space = app->name_space();
  filter.limit = 200;
  return Listing<Info>([app, filter, convert, ended = false]() mutable {
    std::vector<Info> infos;
    while (!ended && infos.empty()) {  // a page may have nothing that can be read
      const Page page = detail::translating([&] { return app->engine().list(filter); });
      for (const Execution& execution : page) infos.push_back(convert(execution));
      filter.before = page.next;
      ended = !page.next;
    }
    return infos;
  });
}

std::optional<Status> stored(std::optional<api::Status> status) {
  return status ? std::optional(static_cast<Status>(*status)) : std::nullopt;
}

}  // namespace

Listing<TaskInfo> App::tasks(const TaskFilter& filter) {
  live();
  ListFilter wanted;
  wanted.kind = Kind::task;
  wanted.queue = filter.queue;
  wanted.type = filter.type;
  wanted.idempotency_key = filter.key;
  wanted.status = stored(filter.status);
  return listing<TaskInfo>(state_, std::move(wanted), task_info);
}

Listing<WorkflowInfo> App::workflows(const WorkflowFilter& filter) {
  live();
  ListFilter wanted;
  wanted.kind = Kind::workflow;
  wanted.queue = filter.queue;
  wanted.type = filter.type;
  wanted.status = stored(filter.status);
  return listing<WorkflowInfo>(state_, std::move(wanted), workflow_info);
}

namespace detail {

namespace {

constexpr std::int32_t kHistoryPage = 1000;

// The state of the task or child that a step waits for.
void look_at_open(AppState& app, const Event& command, Step& step) {
  if (!command.execution) return;
  const auto execution = app.engine().find(app.name_space(), *command.execution);
  if (execution) step.last_error = text_of(execution->error);
}

std::vector<Event> whole_history(AppState& app, const ExecutionId& run) {
  std::vector<Event> events;
  for (std::int64_t after = 0;;) {
    const auto page = app.engine().history(app.name_space(), run, after, kHistoryPage);
    if (page.empty()) return events;
    events.insert(events.end(), page.begin(), page.end());
    after = page.back().no;
  }
}

}  // namespace

std::vector<Step> steps_of(AppState& app, const ExecutionId& run) {
  std::vector<Step> steps;
  std::vector<Event> commands;
  for (const Event& event : whole_history(app, run)) {
    if (is_command(event.kind)) {
      const bool waits = event.kind != Event::Kind::side_effect && event.kind != Event::Kind::version &&
                         event.kind != Event::Kind::publish && event.kind != Event::Kind::cancel_step;
      steps.push_back({event.step, std::string(to_string(event.kind)), event.name, waits ? "open" : "completed",
                       text_of(event.error)});
      commands.push_back(event);
    } else if (is_outcome(event) && event.step <= std::ssize(steps)) {
      Step& step = steps[static_cast<std::size_t>(event.step) - 1];
      step.status = event.status ? to_string(*event.status) : "completed";
      step.last_error = text_of(event.error);
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].status == "open") look_at_open(app, commands[i], steps[i]);
  }
  return steps;
}

}  // namespace detail

}  // namespace hapax
