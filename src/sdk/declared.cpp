#include "hapax/detail/declared.h"

#include "hapax/app.h"
#include "sdk/app_state.h"

namespace hapax::detail {

App Declared::app() const {
  if (auto state = app_.lock()) return App(std::move(state));
  const bool had_one = app_.owner_before(std::weak_ptr<AppState>()) || std::weak_ptr<AppState>().owner_before(app_);
  throw Error("InvalidRequest",
              had_one
                  ? "the app that '" + name_ + "' was declared to is closed: keep it as long as you submit"
                  : "'" + name_ + "' was made from its name and belongs to no app: use app.submit(task, input) or " +
                        "app.start(workflow, id, input), or declare it first");
}

AnyHandle Declared::submit_json(std::string input_json, const SubmitOptions& options) const {
  return app().submit_json(name_, std::move(input_json), options);
}

void Declared::submit_json_async(std::string input_json, const SubmitOptions& options,
                                 std::function<void(AnyHandle)> done) const {
  app().submit_json_async(name_, std::move(input_json), options, std::move(done));
}

AnyHandle Declared::submit_json_in(sqlite3* connection, std::string input_json, const SubmitOptions& options) const {
  return app().submit_json_in(connection, name_, std::move(input_json), options);
}

AnyHandle Declared::submit_json_in(pg_conn* connection, std::string input_json, const SubmitOptions& options) const {
  return app().submit_json_in(connection, name_, std::move(input_json), options);
}

AnyWorkflowHandle Declared::start_json(std::string_view workflow_id, std::string input_json,
                                       const SubmitOptions& options) const {
  return app().start_json(name_, workflow_id, std::move(input_json), options);
}

void Declared::start_json_async(std::string_view workflow_id, std::string input_json, const SubmitOptions& options,
                                std::function<void(AnyWorkflowHandle)> started) const {
  app().start_json_async(name_, workflow_id, std::move(input_json), options, std::move(started));
}

AnyWorkflowHandle Declared::start_json_in(sqlite3* connection, std::string_view workflow_id, std::string input_json,
                                          const SubmitOptions& options) const {
  return app().start_json_in(connection, name_, workflow_id, std::move(input_json), options);
}

AnyWorkflowHandle Declared::start_json_in(pg_conn* connection, std::string_view workflow_id, std::string input_json,
                                          const SubmitOptions& options) const {
  return app().start_json_in(connection, name_, workflow_id, std::move(input_json), options);
}

AnyWorkflowHandle Declared::find_workflow(std::string_view workflow_id) const {
  return app().find_workflow(workflow_id);
}

}  // namespace hapax::detail
