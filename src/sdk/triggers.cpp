#include <algorithm>

#include "core/canonical_json.h"
#include "core/cloud_event.h"
#include "core/json_writer.h"
#include "hapax/app.h"
#include "hapax/trigger.h"
#include "sdk/app_state.h"

namespace hapax {

namespace {

std::string_view word(Misfire policy) {
  return policy == Misfire::skip ? "skip" : policy == Misfire::catchup ? "catchup" : "compress";
}

std::string_view word(WhileOpen policy) {
  return policy == WhileOpen::allow ? "allow" : policy == WhileOpen::skip ? "skip" : "buffer_one";
}

std::string in_ms(Milliseconds duration) { return std::to_string(duration.count()) + "ms"; }

// The configuration file's definition wins, as everywhere: this program's, or the server's.
void put_activity(detail::AppState& app, const std::string& id, const std::string& settings_json) {
  try {
    detail::translating([&] {
      app.engine().activities().put(app.name_space(), id, ActivitySettings::parse(parse_json(settings_json)));
    });
  } catch (const Error& error) {
    if (error.code() != "DecidedByFile") throw;
  }
}

}  // namespace

// `what` is the member that says what to start.
void App::schedule_json(const std::string& name, std::string_view what, const std::string& start_json,
                        const CronSchedule& cron) {
  JsonWriter out;
  out.begin_object().key("from_code").boolean(true).key(what).raw(start_json);
  out.key("trigger").begin_object().key("cron").begin_object();
  out.key("expression").string(cron.expression_).key("timezone").string(cron.time_zone_);
  if (cron.misfire_) out.key("misfire_policy").string(word(*cron.misfire_));
  if (cron.catchup_limit_) out.key("catchup_limit").integer(*cron.catchup_limit_);
  if (cron.grace_) out.key("misfire_grace").string(in_ms(*cron.grace_));
  if (cron.while_open_) out.key("overlap").string(word(*cron.while_open_));
  if (cron.jitter_) out.key("jitter").string(in_ms(*cron.jitter_));
  put_activity(live(), name, out.end_object().end_object().end_object().take());
}

void App::schedule_workflow(const std::string& name, const std::string& type, const std::string& input_json,
                            const CronSchedule& cron) {
  JsonWriter out;
  out.begin_object().key("type").string(type);
  if (!input_json.empty()) out.key("input").raw(input_json);
  if (const auto queue = live().queue_of(type, Kind::workflow)) out.key("queue").string(*queue);
  schedule_json(name, "workflow", out.end_object().take(), cron);
}

void App::schedule_task(const std::string& name, const std::string& type, const std::string& input_json,
                        const CronSchedule& cron) {
  JsonWriter out;
  out.begin_array().begin_object().key("type").string(type);
  if (!input_json.empty()) out.key("input").raw(input_json);
  if (const auto queue = live().queue_of(type)) out.key("queue").string(*queue);
  schedule_json(name, "tasks", out.end_object().end_array().take(), cron);
}

Published App::publish(const api::CloudEvent& event) {
  JsonWriter out;
  out.begin_object().key("specversion").string("1.0");
  if (!event.id.empty()) out.key("id").string(event.id);
  out.key("source").string(event.source).key("type").string(event.type);
  if (event.subject) out.key("subject").string(*event.subject);
  if (!event.data.empty()) out.key("data").raw(canonical_json(detail::parse_document(event.data)));
  const std::string document = out.end_object().take();
  detail::AppState& app = live();
  const auto receipt = detail::translating([&] {
    std::vector<CloudEvent> events{CloudEvent::parse(parse_json(document))};
    return await<std::vector<EventReceipt>>([&](auto reply) {
             app.engine().activities().deliver(app.name_space(), std::move(events), std::move(reply));
           })
        .at(0);
  });
  if (receipt.is_refused()) {
    throw Error("IdempotencyConflict", "another event with the id '" + receipt.id + "' came before");
  }
  return {receipt.id, receipt.started, receipt.duplicates, receipt.conflicts};
}

namespace detail {

namespace {

void add_condition(std::string& conditions, const std::string& pointer, std::string_view test,
                   const std::string& value_json) {
  JsonWriter out;
  out.begin_object().key("pointer").string(pointer).key(test).raw(value_json).end_object();
  conditions += (conditions.empty() ? "" : ",") + out.take();
}

// A name of an activity has no colon.
std::string without_colons(std::string text) {
  std::replace(text.begin(), text.end(), ':', '-');
  return text;
}

}  // namespace

void TriggerOfEvents::where_equals(std::string pointer, std::string value_json) {
  add_condition(where_json_, pointer, "equals", value_json.empty() ? "null" : value_json);
}

void TriggerOfEvents::where_prefix(std::string pointer, std::string prefix) {
  add_condition(where_json_, pointer, "prefix", to_json(prefix));
}

void TriggerOfEvents::where_exists(std::string pointer) { add_condition(where_json_, pointer, "exists", "true"); }

std::string TriggerOfEvents::name_for(const std::string& verb, const std::string& what) const {
  return name_.empty() ? without_colons(type_ + "-" + verb + "-" + what) : name_;
}

void TriggerOfEvents::start(const std::string& workflow, const char* verb) const {
  const auto app = app_.lock();
  if (!app) throw Error("InvalidRequest", "the app of this event is closed");
  app->check_usable();
  const std::string id = name_for(verb, workflow);
  JsonWriter out;
  out.begin_object().key("from_code").boolean(true);
  out.key("workflow").begin_object().key("type").string(workflow);
  if (const auto queue = app->queue_of(workflow, Kind::workflow)) out.key("queue").string(*queue);
  out.end_object().key("trigger").begin_object().key("event").begin_object().key("type").string(type_);
  if (!source_.empty()) out.key("source").string(source_);
  if (!where_json_.empty()) out.key("where").raw("[" + where_json_ + "]");
  put_activity(*app, id, out.end_object().end_object().end_object().take());
}

void TriggerOfEvents::signal(WorkflowFunction forward, const char* signal) const {
  const auto app = app_.lock();
  if (!app) throw Error("InvalidRequest", "the app of this event is closed");
  const std::string type = "signal " + name_for("signal", signal);
  app->declare(type, DeclaredWorkflow{{}, std::move(forward)}, nullptr);
  TriggerOfEvents named = *this;
  named.name_ = name_for("signal", signal);
  named.start(type, "start");
}

}  // namespace detail

}  // namespace hapax
