// Activities that send a signal on an event: to the workflow that the event names, once per event.
#include "core/field.h"
#include "engine/activities_test.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ActivitySignals : public ActivitiesTest {
 protected:
  static ActivitySettings signal_to(const std::string& target) {
    return settings(R"({"event":{"type":"paid"}})", R"("signal":{"workflow_id":")" + target + R"(","name":"paid"})");
  }

  void start_workflow(const std::string& workflow_id) {
    SubmitRequest request;
    request.kind = Kind::workflow;
    request.type = "process_order";
    request.idempotency_key = workflow_id;
    await<std::vector<SubmitResult>>([&](auto reply) { engine_->submit(kNamespace, {request}, std::move(reply)); });
  }

  // The payloads of the signals that it got.
  std::vector<std::string> signals(const std::string& workflow_id) {
    std::vector<std::string> payloads;
    const auto run = engine_->find_workflow(kNamespace, workflow_id);
    for (const Event& event : engine_->history(kNamespace, run->id, 0, 1000)) {
      if (event.kind == Event::Kind::signal && event.name == "paid") payloads.push_back(event.value.value_or(""));
    }
    return payloads;
  }

  Execution closed(const std::string& workflow_id) {
    std::optional<Execution> run;
    eventually([&] {
      run = engine_->find_workflow(kNamespace, workflow_id);
      return run && is_closed(run->status);
    });
    return *run;
  }
};

TEST_F(ActivitySignals, SendTheDataOfAnEventOnce) {
  start();
  start_workflow("order-7");
  put(signal_to("order-{/data/order}"));
  EXPECT_THAT(deliver({event("e1", R"({"order":7})")})[0].started, ElementsAre("activity-a:e1"));
  const Execution run = closed("activity-a:e1");
  EXPECT_EQ(run.status, Status::completed);
  EXPECT_EQ(run.result, R"({"signal":"paid","workflow_id":"order-7"})");
  EXPECT_THAT(signals("order-7"), ElementsAre(R"({"order":7})"));

  EXPECT_THAT(deliver({event("e1", R"({"order":7})")})[0].duplicates, SizeIs(1));
  EXPECT_THAT(deliver({event("e1", R"({"order":8})")})[0].conflicts, SizeIs(1));
  EXPECT_THAT(deliver({event("e2", R"({"order":7})")})[0].started, SizeIs(1));
  closed("activity-a:e2");
  EXPECT_THAT(signals("order-7"), SizeIs(2));
  EXPECT_THAT(runs(), SizeIs(2));
}

TEST_F(ActivitySignals, SayWhyThereWasNone) {
  start();
  put(signal_to("order-{/data/order}"));
  deliver({event("unknown", R"({"order":7})"), event("no-number", R"({"order":{}})"), event("nothing", "1")});
  const Execution unknown = closed("activity-a:unknown");
  EXPECT_EQ(unknown.status, Status::failed);
  EXPECT_THAT(unknown.error->message, HasSubstr("WorkflowNotFound"));
  EXPECT_EQ(closed("activity-a:no-number").error->type, "NoSignalTarget");
  EXPECT_THAT(closed("activity-a:nothing").error->message, HasSubstr("/data/order"));
}

TEST_F(ActivitySignals, AreSentAgainWhenTheirRunIsResumed) {
  start();
  put(signal_to("{/data}"));
  deliver({event("e1", R"("order-7")")});
  EXPECT_EQ(closed("activity-a:e1").status, Status::failed);
  start_workflow("order-7");
  ControlRequest resume;
  resume.name_space = kNamespace;
  resume.request_key = "r";
  resume.action = ControlRequest::Action::resume;
  resume.workflow_id = "activity-a:e1";
  await<ControlOutcome>([&](auto reply) { engine_->control(resume, std::move(reply)); });
  EXPECT_EQ(closed("activity-a:e1").status, Status::completed);
  EXPECT_THAT(signals("order-7"), ElementsAre(R"("order-7")"));
}

TEST_F(ActivitySignals, AreReadBackAsTheyWereWritten) {
  const ActivitySettings written = signal_to("{/subject}-{/data/a~1b}");
  EXPECT_EQ(ActivitySettings::parse(parse_json(written.to_json())), written);
}

std::string pointer_of_fault(const std::string& start, const std::string& trigger = R"({"event":{"type":"paid"}})") {
  try {
    ActivitySettings::parse(parse_json("{" + start + R"(,"trigger":)" + trigger + "}"));
  } catch (const InvalidField& error) {
    return error.pointer();
  }
  return "none";
}

TEST(ActivitySignal, NamesWhatIsWrong) {
  EXPECT_EQ(pointer_of_fault(R"("signal":{"name":"n"})"), "/signal/workflow_id");
  EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":"w"})"), "/signal/name");
  EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":"","name":"n"})"), "/signal/workflow_id");
  for (const char* target : {"{", "}", "a{/b", "a}b", "{a}", "{}", "{/a{/b}}"}) {
    EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":")" + std::string(target) + R"(","name":"n"})"),
              "/signal/workflow_id")
        << target;
  }
  EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":"w","name":"hapax.update:x"})"), "/signal/name");
  EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":"w","name":"n","colour":1})"), "/signal/colour");
  EXPECT_EQ(pointer_of_fault(R"("workflow":{"type":"t"},"signal":{"workflow_id":"w","name":"n"})"), "/signal");
  EXPECT_EQ(pointer_of_fault(R"("tasks":[{"type":"t"}],"signal":{"workflow_id":"w","name":"n"})"), "/signal");
  EXPECT_EQ(pointer_of_fault(R"("workflow":{"type":"t"},"tasks":[{"type":"t"}])"), "/tasks");
  EXPECT_EQ(pointer_of_fault(R"("signal":{"workflow_id":"w","name":"n"})", R"({"cron":{"expression":"@daily"}})"),
            "/signal");
}

}  // namespace
}  // namespace hapax
