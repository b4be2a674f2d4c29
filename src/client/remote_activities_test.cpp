// Activities over HTTP: calls reach the engine behind the server, and its answers come back.
#include <gtest/gtest.h>

#include "client/remote_engine.h"
#include "core/field.h"
#include "http/fake_engine.h"
#include "http/server.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);
const std::string kSpace = "default";
const std::string kOddId = "daily/ü ?#";

ServerOptions any_port() {
  ServerOptions options;
  options.port = 0;
  return options;
}

ActivitySettings daily() {
  return ActivitySettings::parse(parse_json(
      R"({"name":"Daily","workflow":{"type":"report","input":[1]},"trigger":{"cron":{"expression":"0 9 * * *"}}})"));
}

CloudEvent event(const std::string& members) {
  return CloudEvent::parse(parse_json(R"({"specversion":"1.0","type":"t","source":"/s")" + members + "}"));
}

class RemoteActivity : public testing::Test {
 protected:
  Activities& remote() { return client_->activities(); }

  std::optional<Triggered> trigger(const std::string& id, const std::optional<std::string>& key) {
    return await<std::optional<Triggered>>([&](auto reply) { remote().trigger(kSpace, id, key, reply); });
  }

  auto backfill(const std::string& id, Time from, Time to, bool force = false) {
    return await<std::optional<std::vector<ActivityRun>>>(
        [&](auto reply) { remote().backfill(kSpace, id, {from, to, force}, reply); });
  }

  http::FakeEngine engine_;
  std::unique_ptr<Server> server_ = start_server(engine_, any_port());
  std::unique_ptr<Engine> client_ =
      connect_engine({.url = "http://127.0.0.1:" + std::to_string(server_->port()), .token = "", .name_space = kSpace});
};

TEST_F(RemoteActivity, IsPutFoundPausedAndRemoved) {
  EXPECT_FALSE(remote().find(kSpace, kOddId));
  EXPECT_EQ(remote().put(kSpace, kOddId, daily()).settings, daily());
  EXPECT_EQ(remote().put(kSpace, kOddId, daily()).id, kOddId);
  EXPECT_TRUE(engine_.fake_activities.stored.contains(kOddId));
  EXPECT_EQ(remote().find(kSpace, kOddId)->settings, daily());
  EXPECT_TRUE(remote().set_paused(kSpace, kOddId, true)->paused);
  EXPECT_FALSE(remote().set_paused(kSpace, kOddId, false)->paused);
  EXPECT_TRUE(remote().remove(kSpace, kOddId));
  EXPECT_FALSE(remote().remove(kSpace, kOddId));
  EXPECT_FALSE(remote().set_paused(kSpace, kOddId, true));
}

TEST_F(RemoteActivity, ListsPageByPage) {
  for (const char* id : {"a", "b", "c"}) remote().put(kSpace, id, daily());
  const ActivitiesPage first = remote().list(kSpace, "", 2);
  EXPECT_EQ(first.activities.size(), 2U);
  ASSERT_TRUE(first.next_cursor);
  const ActivitiesPage second = remote().list(kSpace, *first.next_cursor, 2);
  EXPECT_EQ(second.activities.at(0).id, "c");
  EXPECT_EQ(second.next_cursor, std::nullopt);
}

TEST_F(RemoteActivity, RunsNameTheirActivity) {
  ActivityRun run;
  run.at = kNoon;
  run.occurrence = format_occurrence(kNoon);
  run.workflow_id = activity_workflow_id(kOddId, run.occurrence);
  run.disposition = Disposition::caught_up;
  run.why = "late";
  run.recorded_at = kNoon + 1h;
  engine_.fake_activities.recorded = {run, run};
  remote().put(kSpace, kOddId, daily());
  const auto page = remote().runs(kSpace, kOddId, "", 1);
  ASSERT_EQ(page->runs.size(), 1U);
  EXPECT_TRUE(page->next_cursor);
  run.name_space = kSpace;
  run.activity = kOddId;
  EXPECT_EQ(page->runs.front(), run);
  EXPECT_EQ(backfill(kOddId, kNoon, kNoon)->at(1), run);
  EXPECT_FALSE(engine_.fake_activities.backfilled.force);
  backfill(kOddId, kNoon, kNoon + 1h, true);
  EXPECT_TRUE(engine_.fake_activities.backfilled.force);
  EXPECT_EQ(engine_.fake_activities.backfilled.to, kNoon + 1h);
  EXPECT_FALSE(remote().runs(kSpace, "unknown", "", 1));
  EXPECT_FALSE(backfill("unknown", kNoon, kNoon));
}

TEST_F(RemoteActivity, ATriggerUnderOneKeyIsOneRun) {
  EXPECT_FALSE(trigger(kOddId, "k"));
  remote().put(kSpace, kOddId, daily());
  EXPECT_TRUE(trigger(kOddId, "k")->created);
  EXPECT_FALSE(trigger(kOddId, "k")->created);
  EXPECT_TRUE(trigger(kOddId, std::nullopt)->created);
  EXPECT_THROW(trigger(kOddId, "a\nb"), InvalidField);
}

TEST_F(RemoteActivity, TheServersRefusalsKeepTheirMessages) {
  engine_.fake_activities.of_file = "a";
  try {
    remote().put(kSpace, "a", daily());
    FAIL() << "the file has it";
  } catch (const RemoteRefusal& refusal) {
    EXPECT_EQ(refusal.word(), "DecidedByFile");
  }
  remote().put(kSpace, "b", daily());
  EXPECT_THROW(backfill("b", kNoon, kNoon - 1s), InvalidField);
  EXPECT_THROW(remote().runs(kSpace, "b", "x", 1), InvalidField);
}

TEST_F(RemoteActivity, AConflictingEventIsAReceiptNotAFailure) {
  engine_.fake_activities.conflicting = "e1";
  const std::vector<CloudEvent> events{event(R"(,"id":"e1")")};
  const auto receipts = await<std::vector<EventReceipt>>([&](auto reply) { remote().deliver(kSpace, events, reply); });
  EXPECT_TRUE(receipts.at(0).is_refused());
  EXPECT_EQ(receipts.at(0).conflicts, std::vector<std::string>{"activity-a:e1"});
}

TEST_F(RemoteActivity, EventsArriveAsTheyWereSent) {
  const std::vector<CloudEvent> events{event(R"(,"id":"e1","data":{"n":9007199254740993})"), event(R"(,"id":"e2")")};
  const auto receipts = await<std::vector<EventReceipt>>([&](auto reply) { remote().deliver(kSpace, events, reply); });
  ASSERT_EQ(receipts.size(), 2U);
  EXPECT_EQ(receipts[1].id, "e2");
  EXPECT_EQ(receipts[1].started, std::vector<std::string>{"activity-a:e2"});
  ASSERT_EQ(engine_.fake_activities.delivered.size(), 2U);
  EXPECT_EQ(engine_.fake_activities.delivered[0].data()->find("n")->text, "9007199254740993");
}

}  // namespace
}  // namespace hapax
