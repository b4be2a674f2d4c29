#include "engine/activities_test.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ActivitiesTest, AScheduleFiresUnderItsDeterministicId) {
  start();
  put(cron("* * * * *"));
  clock_.advance(60s);
  const auto rows = runs_once_there(1);
  settled();
  EXPECT_THAT(rows, ElementsAre(disposed(Disposition::ran)));
  EXPECT_THAT(workflow_ids(), ElementsAre("activity-a:2026-01-01T00:01:00+00:00"));
}

TEST_F(ActivitiesTest, ServersDownForTwentyFiveFiringsSkipThemAll) {
  start();
  put(cron("* * * * *", R"("misfire_policy":"skip","misfire_grace":"1s")"));
  settled();
  stop();
  clock_.advance(25min + 30s);
  start();
  EXPECT_THAT(runs_once_there(25), AllOf(SizeIs(25), Each(disposed(Disposition::skipped))));
  settled();
  EXPECT_THAT(workflow_ids(), IsEmpty());
}

TEST_F(ActivitiesTest, ServersDownForTwentyFiveFiringsCatchUpWithTheLatestTen) {
  start();
  put(cron("* * * * *", R"("misfire_policy":"catchup","misfire_grace":"1s")"));
  settled();
  stop();
  clock_.advance(25min + 30s);
  start();
  const auto rows = runs_once_there(25);
  settled();
  ASSERT_EQ(rows.size(), 25U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].disposition, i < 10 ? Disposition::caught_up : Disposition::skipped) << i;
  }
  std::vector<std::string> in_order_of_start;
  for (const Execution& run : workflows()) in_order_of_start.insert(in_order_of_start.begin(), *run.idempotency_key);
  EXPECT_EQ(in_order_of_start.size(), 10U);
  EXPECT_TRUE(std::is_sorted(in_order_of_start.begin(), in_order_of_start.end()));
  EXPECT_EQ(in_order_of_start.front(), "activity-a:2026-01-01T00:16:00+00:00");
}

TEST_F(ActivitiesTest, ServersDownForTwentyFiveFiringsCompressThemIntoOne) {
  start();
  put(cron("* * * * *", R"("misfire_policy":"compress","misfire_grace":"1s")"));
  settled();
  stop();
  clock_.advance(25min + 30s);
  start();
  const auto rows = runs_once_there(25);
  settled();
  EXPECT_THAT(rows, AllOf(SizeIs(25), Each(disposed(Disposition::compressed)),
                          Each(Field(&ActivityRun::workflow_id, "activity-a:2026-01-01T00:25:00+00:00"))));
  ASSERT_THAT(workflow_ids(), ElementsAre("activity-a:2026-01-01T00:25:00+00:00"));
  EXPECT_EQ(workflows().front().input,
            R"({"scheduled_for":"2026-01-01T00:25:00.000Z",)"
            R"("window":{"from":"2026-01-01T00:01:00.000Z","missed":25,"to":"2026-01-01T00:25:00.000Z"}})");
}

TEST_F(ActivitiesTest, WhatPassedInAPauseFollowsThePolicyAndTheLedgerSaysSo) {
  start();
  put(cron("* * * * *", R"("misfire_grace":"1h")"));
  settled();
  ASSERT_TRUE(activities().set_paused(kNamespace, "a", true)->paused);
  clock_.advance(3min + 10s);
  const auto view = activities().set_paused(kNamespace, "a", false);
  EXPECT_FALSE(view->paused);
  EXPECT_THAT(
      runs_once_there(3),
      AllOf(SizeIs(3), Each(AllOf(disposed(Disposition::skipped), Field(&ActivityRun::why, HasSubstr("paused"))))));
  settled();
  EXPECT_THAT(workflow_ids(), IsEmpty());
}

TEST_F(ActivitiesTest, AnotherExpressionNeverReplaysThePast) {
  start();
  put(cron("0 0 1 1 *", R"("misfire_policy":"catchup","misfire_grace":"1s")"));
  settled();
  clock_.advance(1h);
  put(cron("* * * * *", R"("misfire_policy":"catchup","misfire_grace":"1s")"));
  settled();
  clock_.advance(1min);
  EXPECT_THAT(runs_once_there(1), ElementsAre(disposed(Disposition::ran)));
}

// The configuration file has another expression when the server comes back, and the old one's firings were not handled.
TEST_F(ActivitiesTest, WhatWasMissedBeforeAnotherExpressionHasItsRows) {
  options_.activities["a"] = cron("* * * * *");
  start();
  settled();
  stop();
  clock_.advance(3min);
  options_.activities["a"] = cron("0 0 1 1 *");
  start();
  EXPECT_THAT(
      runs_once_there(3),
      AllOf(SizeIs(3), Each(AllOf(disposed(Disposition::skipped), Field(&ActivityRun::why, HasSubstr("changed"))))));
  settled();
  EXPECT_THAT(workflow_ids(), IsEmpty());
}

TEST_F(ActivitiesTest, AnOpenRunMakesTheNextFiringSkip) {
  start();
  put(cron("* * * * *", R"("overlap":"skip")"));
  clock_.advance(1min);
  runs_once_there(1);
  settled();
  clock_.advance(1min);
  EXPECT_THAT(runs_once_there(2), ElementsAre(disposed(Disposition::skipped), disposed(Disposition::ran)));
  settled();
  complete_all_workflows();
  clock_.advance(1min);
  EXPECT_THAT(runs_once_there(3).front(), disposed(Disposition::ran));
}

TEST_F(ActivitiesTest, ARunThatIsOpenForLongIsNotForgotten) {
  start();
  put(cron("* * * * * *", R"("overlap":"skip")"));
  clock_.advance(1s);
  runs_once_there(1);
  settled();
  for (int i = 1; i <= 4; ++i) {
    clock_.advance(40s);
    runs_once_there(static_cast<std::size_t>(1 + 40 * i));
    settled();
  }
  EXPECT_THAT(workflow_ids(), SizeIs(1));
}

TEST_F(ActivitiesTest, OneFiringIsBufferedWhileARunIsOpen) {
  start();
  put(cron("* * * * *", R"("overlap":"buffer_one")"));
  clock_.advance(1min);
  runs_once_there(1);
  settled();
  clock_.advance(1min);
  eventually(
      [&] { return store_->activities().find(kNamespace, "a")->document.find("\"buffered\"") != std::string::npos; });
  EXPECT_THAT(runs(), SizeIs(1));
  complete_all_workflows();
  clock_.advance(2s);  // it looks again every second
  EXPECT_THAT(runs_once_there(2), Each(disposed(Disposition::ran)));
  settled();
  EXPECT_THAT(workflow_ids(), SizeIs(2));
}

TEST_F(ActivitiesTest, TriggeredTwiceWithOneKeyItRunsOnce) {
  start();
  put(cron("@yearly"));
  const auto first = trigger("a", "k");
  const auto again = trigger("a", "k");
  const auto other = trigger("a", std::nullopt);
  EXPECT_TRUE(first->created);
  EXPECT_FALSE(again->created);
  EXPECT_EQ(first->workflow_id, again->workflow_id);
  EXPECT_TRUE(other->created);
  EXPECT_THAT(workflow_ids(), SizeIs(2));
  EXPECT_THAT(runs(), SizeIs(2));
  EXPECT_FALSE(trigger("unknown", std::nullopt));
}

// As it is with a store that is slow: each look takes seconds, and the clock goes on.
TEST_F(ActivitiesTest, AnHourOfSecondsIsOneStretchHoweverSlowTheStoreIs) {
  for (const std::string policy : {"catchup", "compress"}) {
    store_ = open_memory_store(clock_);
    start();
    put(cron("* * * * * *", R"("misfire_grace":"5s","misfire_policy":")" + policy + "\""));
    settled();
    stop();
    clock_.advance(1h);
    auto slow = std::make_shared<Server>(store_);
    slow->on_write([&] { clock_.advance(700ms); });
    auto server = start_engine(slow, options_);
    const Time end = clock_.now();
    eventually([&] {
      const auto newest = store_->activities().runs({kNamespace, "a", std::nullopt, 1});
      return !newest.empty() && newest.front().at > end;
    });
    server.reset();
    std::map<Disposition, int> rows;
    int compressed_runs = 0;
    RunFilter filter{kNamespace, "a", std::nullopt, 100'000};
    for (const ActivityRun& run : store_->activities().runs(filter)) {
      ++rows[run.disposition];
      compressed_runs += run.window ? 1 : 0;
    }
    EXPECT_GE(rows[Disposition::ran], 5);
    EXPECT_EQ(rows[Disposition::caught_up], policy == "catchup" ? 10 : 0);
    EXPECT_EQ(compressed_runs, policy == "compress" ? 1 : 0);
  }
}

TEST_F(ActivitiesTest, AfterAClockThatRanAheadNextIsWhatHasNotFired) {
  start();
  put(cron("0 * * * *"));
  clock_.advance(3h);
  runs_once_there(3);
  settled();
  EXPECT_FALSE(activities().find(kNamespace, "a")->fired_ahead_until);
  clock_.advance(-2h - 30min);
  const ActivityView view = *activities().find(kNamespace, "a");
  EXPECT_EQ(view.next.front(), ManualClock::kStart + 4h);
  EXPECT_EQ(view.fired_ahead_until, ManualClock::kStart + 3h);
  const ActivityView other = put(cron("30 * * * *"));
  EXPECT_EQ(other.next.front(), ManualClock::kStart + 1h + 30min) << "another schedule begins now";
  EXPECT_FALSE(other.fired_ahead_until);
}

TEST_F(ActivitiesTest, AListOfTasksIsRunUnderDeterministicNames) {
  start();
  put(settings(R"({"cron":{"expression":"* * * * *"}})",
               R"("tasks":[{"type":"load","input":{"table":1},"queue":"etl"},{"type":"load"},{"type":"mail"}])"));
  clock_.advance(1min);
  eventually([&] { return !workflows().empty() && workflows().front().run.steps == 3; });
  const Execution run = workflows().front();
  for (const auto& [type, step] : {std::pair("load", 1), std::pair("load", 2), std::pair("mail", 3)}) {
    ASSERT_TRUE(store_->find(kNamespace, step_id(run.id, type, step))) << step;
  }
  ClaimRequest request;
  request.name_space = kNamespace;
  request.queues = {"etl", "default"};
  request.limit = 10;
  const auto claimed = store_->claim(std::span(&request, 1));
  for (const Execution& task : claimed.front().executions) {
    Report report;
    report.token = {task.id, task.attempt, *task.lease_secret};
    report.outcome = Report::Completed{"1"};
    await<std::vector<FinishOutcome>>([&](auto reply) { engine_->finish({report}, std::move(reply)); });
  }
  eventually([&] { return workflows().front().status == Status::completed; });
  EXPECT_THAT(*workflows().front().result, HasSubstr(step_name(run.id, "mail", 3)));
}

TEST_F(ActivitiesTest, TheConfigurationFileWins) {
  options_.activities["a"] = cron("@hourly");
  start();
  EXPECT_TRUE(activities().find(kNamespace, "a")->from_file);
  EXPECT_THROW(put(cron("@daily")), DecidedByFile);
  EXPECT_THROW(activities().remove(kNamespace, "a"), DecidedByFile);
}

// A server dies before each single write of a firing in turn; another one does what is left, and nothing twice.
TEST_F(ActivitiesTest, AStrategyStoredBesideAnEventTriggerIsNotRead) {
  start();
  put(ActivitySettings::parse(parse_json(R"({"workflow":{"type":"t"},"trigger":{"event":{}}})")));
  ActivityRow row = *store_->activities().find(kNamespace, "a");
  const std::string trigger = R"("trigger":)";
  row.document.insert(row.document.find(trigger), R"("dedupe_key_strategy":"skip",)");
  EXPECT_FALSE(ActivityRecord::parse(row).settings.dedupe_key_strategy);
}

TEST_F(ActivitiesTest, AServerThatDiesHalfWayIsMadeUpForByAnother) {
  for (int writes = 0;; ++writes) {
    store_ = open_memory_store(clock_);
    start();
    put(cron("* * * * *", R"("misfire_policy":"catchup","misfire_grace":"1s","catchup_limit":2)"));
    settled();
    stop();
    clock_.advance(3min + 30s);
    auto first = std::make_shared<Server>(store_);
    first->die_before(writes);
    auto dying = start_engine(first, options_);
    const auto done = [&] {
      const auto row = store_->activities().find(kNamespace, "a");
      return store_->activities().due(1).rows.empty() && row->document.find(R"("pending":[])") != std::string::npos;
    };
    eventually([&] { return first->dead() || done(); });
    const bool died = first->dead();
    dying.reset();
    clock_.advance(10s);  // longer than the lease of a decision
    start();
    settled();
    EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::caught_up), disposed(Disposition::caught_up),
                                    disposed(Disposition::skipped)))
        << "died before write " << writes;
    EXPECT_THAT(workflow_ids(), SizeIs(2)) << "died before write " << writes;
    stop();
    clock_.advance(20s);  // to the full minute again
    if (!died) {
      EXPECT_GE(writes, 4);  // decide, ledger, runs, done
      break;
    }
  }
}

TEST_F(ActivitiesTest, ThreeServersFireOnce) {
  std::vector<std::unique_ptr<LocalEngine>> others;
  start();
  for (int i = 0; i < 2; ++i) others.push_back(start_engine(std::make_shared<Server>(store_), options_));
  put(cron("* * * * * *"));
  for (int second = 1; second <= 5; ++second) {
    clock_.advance(1s);
    eventually([&] { return runs().size() >= static_cast<std::size_t>(second); });
  }
  settled();
  EXPECT_THAT(runs(), AllOf(SizeIs(5), Each(disposed(Disposition::ran))));
  EXPECT_THAT(workflow_ids(), SizeIs(5));
}

}  // namespace
}  // namespace hapax
