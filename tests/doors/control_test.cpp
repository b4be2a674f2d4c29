// Control operations and activities: request keys, signals, forks, ids.
#include "cli/command.h"
#include "doors/doors.h"
#include "wire/header.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;

const std::string kLongKey(201, 'x'), kLongName(256, 'x');

class Control : public Doors {
 protected:
  Control() {
    embedded_.start("w", "w-1", 1);
    far_.start("w", "w-1", 1);
    SubmitRequest start;
    start.kind = Kind::workflow;
    start.type = "w";
    start.idempotency_key = "w-1";
    await<std::vector<SubmitResult>>([&](auto reply) { local_->submit(space_, {start}, reply); });
  }

  ControlRequest request(ControlRequest::Action action, std::string key = "key") const {
    ControlRequest request;
    request.name_space = space_;
    request.action = action;
    request.workflow_id = "w-1";
    request.request_key = std::move(key);
    if (action == ControlRequest::Action::signal) request.signal = "s";
    return request;
  }

  static Fault at_engine(Engine& engine, const ControlRequest& request) {
    return fault_of([&] { await<ControlOutcome>([&](auto reply) { engine.control(request, reply); }); });
  }

  void expect_at_engines(const ControlRequest& request, const Fault& fault) {
    EXPECT_EQ(at_engine(*local_, request), fault);
    EXPECT_EQ(at_engine(*remote_, request), fault);
  }

  void expect_at_engines(const UpdateRequest& request, const Fault& fault) {
    for (Engine* engine : {static_cast<Engine*>(local_.get()), remote_.get()}) {
      EXPECT_EQ(
          fault_of([&] { await<UpdateOutcome>([&](auto reply) { engine->update(request, Duration(0), reply); }); }),
          fault);
    }
  }

  void expect_in_library(const std::function<void(const AnyWorkflowHandle&)>& use, const Fault& fault) {
    EXPECT_EQ(fault_of([&] { use(embedded_.find_workflow("w-1")); }), fault);
    EXPECT_EQ(fault_of([&] { use(far_.find_workflow("w-1")); }), fault);
  }
};

TEST_F(Control, ABadRequestKeyIsRefusedAtEveryDoor) {
  const Fault fault{"InvalidIdempotencyKey", "header Idempotency-Key"};
  using Action = ControlRequest::Action;
  for (const std::string& key :
       {std::string(), std::string("  "), kLongKey, std::string("a\nb"), std::string("\xff")}) {
    SCOPED_TRACE("'" + key + "'");
    for (const Action action : {Action::cancel, Action::resume, Action::fork, Action::signal}) {
      expect_at_engines(request(action, key), fault);
    }
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.cancel(key); }, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.resume(key); }, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.fork(1, key); }, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.signal("s", 1, key); }, fault);
    expect_at_engines(UpdateRequest{space_, "w-1", "u", key}, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.update<int>("u", 1, key); }, fault);
    for (App* app : {&embedded_, &far_}) {
      const AnyHandle task = app->submit("t", 1);
      EXPECT_EQ(fault_of([&] { task.cancel(key); }), fault);
      EXPECT_EQ(fault_of([&] { task.retry(key); }), fault);
    }
    const bool fits_in_header = key.find_first_of("\n\xff") == std::string::npos;
    if (!fits_in_header) continue;
    const std::vector<std::string> header{"Idempotency-Key: " + (key.empty() ? "\"\"" : wire::write_key_header(key))};
    for (const std::string operation : {"cancel", "resume", "fork", "signals/s", "updates/u"}) {
      EXPECT_EQ(over_http("POST", "/v1/workflows/w-1/" + operation, "", header), fault) << operation;
    }
    if (!key.empty()) {  // none: one is drawn
      EXPECT_EQ(on_command_line({"cancel", "--workflow", "w-1", "--request-key", key}).first, kUsage);
    }
  }
}

TEST_F(Control, ABadSignalNameIsRefusedAtEveryDoor) {
  const Fault fault = invalid("parameter name");
  for (const std::string& name : {std::string(" "), kLongName}) {
    ControlRequest signal = request(ControlRequest::Action::signal);
    signal.signal = name;
    expect_at_engines(signal, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.signal(name, 1, "key"); }, fault);
    EXPECT_EQ(over_http("POST", "/v1/workflows/w-1/signals/" + wire::percent_encode(name), "", {"Idempotency-Key: k"}),
              fault);
    EXPECT_EQ(on_command_line({"signal", "w-1", name}).first, kUsage);
  }
}

TEST_F(Control, ALongSignalNameIsTakenAtEveryDoor) {
  const std::string name(200, 'x');
  ControlRequest signal = request(ControlRequest::Action::signal);
  signal.signal = name;
  expect_at_engines(signal, kAccepted);
  expect_in_library([&](const AnyWorkflowHandle& handle) { handle.signal(name, 1, "key-2"); }, kAccepted);
  EXPECT_EQ(over_http("POST", "/v1/workflows/w-1/signals/" + name, "", {"Idempotency-Key: key-3"}), kAccepted);
  EXPECT_EQ(on_command_line({"signal", "w-1", name}).first, kOk);
}

TEST_F(Control, ABadUpdateNameIsRefusedAtEveryDoor) {
  const Fault fault = invalid("parameter name");
  for (const std::string& name : {std::string(" "), kLongKey}) {
    expect_at_engines(UpdateRequest{space_, "w-1", name, "key"}, fault);
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.update<int>(name, 1, "key"); }, fault);
    EXPECT_EQ(over_http("POST", "/v1/workflows/w-1/updates/" + wire::percent_encode(name), "", {"Idempotency-Key: k"}),
              fault);
    EXPECT_EQ(on_command_line({"update", "w-1", name}).first, kUsage);
  }
}

TEST_F(Control, ABadForkIsRefusedAtEveryDoor) {
  const auto post = [&](const std::string& body) {
    return over_http("POST", "/v1/workflows/w-1/fork", body, {"Idempotency-Key: k"});
  };
  ControlRequest fork = request(ControlRequest::Action::fork);
  fork.from_step = -1;
  expect_at_engines(fork, invalid("/from_step"));
  expect_in_library([](const AnyWorkflowHandle& handle) { handle.fork(-1, "key"); }, invalid("/from_step"));
  EXPECT_EQ(post(R"({"from_step":-1})"), invalid("/from_step"));
  for (const std::string& id : {std::string(" "), kLongName}) {
    fork = request(ControlRequest::Action::fork);
    fork.fork_workflow_id = id;
    expect_at_engines(fork, invalid("/workflow_id"));
    expect_in_library([&](const AnyWorkflowHandle& handle) { handle.fork(1, "key", id); }, invalid("/workflow_id"));
    EXPECT_EQ(post(R"({"from_step":1,"workflow_id":")" + id + "\"}"), invalid("/workflow_id"));
    EXPECT_EQ(on_command_line({"fork", "w-1", "--from-step", "1", "--workflow-id", id}).first, kUsage);
  }
}

TEST_F(Control, AForkFromStepNothingIsOneFromTheStart) {
  ControlRequest fork = request(ControlRequest::Action::fork, "from-the-start");
  fork.fork_workflow_id = "w-2";
  for (const std::int32_t step : {0, 1}) {
    fork.from_step = step;
    expect_at_engines(fork, kAccepted);
  }
  const std::vector<std::string> header{"Idempotency-Key: from-the-start"};
  EXPECT_EQ(over_http("POST", "/v1/workflows/w-1/fork", R"({"workflow_id":"w-2"})", header), kAccepted);
  const Answer answer = send("POST", "/v1/workflows/w-1/fork", R"({"from_step":1,"workflow_id":"w-2"})", header);
  ASSERT_TRUE(answer.body.find("idempotency_replayed"));
  EXPECT_TRUE(answer.body.find("idempotency_replayed")->boolean);
}

TEST_F(Control, AWorkflowThatNoneCanBeCalledIsNotFoundAtAnyDoor) {
  for (const std::string& id : {std::string(" "), kLongName, std::string("\xff")}) {
    ControlRequest cancel = request(ControlRequest::Action::cancel);
    cancel.workflow_id = id;
    for (Engine* engine : {static_cast<Engine*>(local_.get()), remote_.get()}) {
      EXPECT_FALSE(engine->find_workflow(space_, id)) << id;
    }
    EXPECT_EQ(await<ControlOutcome>([&](auto reply) { local_->control(cancel, reply); }).kind,
              ControlOutcome::Kind::not_found);
    for (App* app : {&embedded_, &far_}) {
      EXPECT_EQ(fault_of([&] { app->find_workflow(id); }).code, "WorkflowNotFound");
    }
  }
  EXPECT_EQ(over_http("POST", "/v1/workflows/%20/cancel", "", {"Idempotency-Key: k"}).code, "WorkflowNotFound");
}

TEST_F(Control, BadActivitiesAreRefusedAtEveryDoor) {
  const Json document = parse_json(R"({"workflow":{"type":"t"},"trigger":{"cron":{"expression":"@daily"}}})");
  const ActivitySettings good = ActivitySettings::parse(document);
  ActivitySettings bad = good;
  std::get<CronTrigger>(bad.trigger).expression = "never";
  for (Engine* engine : {static_cast<Engine*>(local_.get()), remote_.get()}) {
    Activities& activities = engine->activities();
    const Fault wrong_id = invalid("parameter id");
    EXPECT_EQ(fault_of([&] { activities.put(space_, "a:b", good); }), wrong_id);
    EXPECT_EQ(fault_of([&] { activities.find(space_, "a:b"); }), wrong_id);
    EXPECT_EQ(fault_of([&] { activities.remove(space_, "a:b"); }), wrong_id);
    EXPECT_EQ(fault_of([&] { activities.set_paused(space_, "a:b", true); }), wrong_id);
    EXPECT_EQ(fault_of([&] { activities.runs(space_, "a:b", "", 1); }), wrong_id);
    EXPECT_EQ(fault_of([&] { activities.put(space_, "a", bad); }), invalid("/trigger/cron/expression"));
    activities.put(space_, "a", good);
    EXPECT_EQ(fault_of([&] { activities.runs(space_, "a", "odd", 1); }), invalid("parameter cursor"));
    EXPECT_EQ(fault_of([&] { activities.runs(space_, "a", "", 0); }), invalid("parameter limit"));
    EXPECT_EQ(fault_of([&] { activities.list(space_, "", 1001); }), invalid("parameter limit"));
    EXPECT_EQ(fault_of([&] {
                await<std::optional<Triggered>>(
                    [&](auto reply) { activities.trigger(space_, "a", std::string(" "), reply); });
              }),
              (Fault{"InvalidIdempotencyKey", "header Idempotency-Key"}));
    const Backfill backwards{.from = Time(2s), .to = Time(1s)};
    EXPECT_EQ(fault_of([&] {
                await<std::optional<std::vector<ActivityRun>>>(
                    [&](auto reply) { activities.backfill(space_, "a", backwards, reply); });
              }),
              invalid("/to"));
  }
  EXPECT_EQ(over_http("GET", "/v1/activities/a%3Ab"), invalid("parameter id"));
  EXPECT_EQ(
      over_http("PUT", "/v1/activities/b", R"({"workflow":{"type":"t"},"trigger":{"cron":{"expression":"never"}}})"),
      invalid("/trigger/cron/expression"));
  EXPECT_EQ(over_http("GET", "/v1/activities/a/runs?cursor=odd"), invalid("parameter cursor"));
  EXPECT_EQ(over_http("GET", "/v1/activities?limit=1001"), invalid("parameter limit"));
  EXPECT_EQ(over_http("POST", "/v1/activities/a/trigger", "", {"Idempotency-Key: \" \""}),
            (Fault{"InvalidIdempotencyKey", "header Idempotency-Key"}));
  EXPECT_EQ(
      over_http("POST", "/v1/activities/a/backfill", R"({"from":"1970-01-01T00:00:02Z","to":"1970-01-01T00:00:01Z"})"),
      invalid("/to"));
}

}  // namespace
}  // namespace hapax::doors
