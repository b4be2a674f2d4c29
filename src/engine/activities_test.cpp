#include "engine/activities.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>

#include "core/field.h"
#include "engine/local_engine.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "support/manual_clock.h"

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

constexpr auto kLong = 20s;  // longer than any test takes; a test that waits this long has failed
const std::string kNamespace = "default";

// One server's view of a store that others use too: it hears no changes, and dies before the n-th write of a firing.
class Server final : public ForwardingStore {
 public:
  explicit Server(std::shared_ptr<Store> store) : ForwardingStore(std::move(store)), rows_(*this) {}

  void die_before(int writes) { left_ = writes; }
  bool dead() const { return left_ < 0; }

  void watch(std::function<void()>) override {}
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters& waiters) override {
    write();
    return store_->submit(submissions, waiters);
  }
  ActivityRows& activities() override { return rows_; }

 private:
  class Rows final : public ActivityRows {
   public:
    explicit Rows(Server& server) : server_(server) {}
    std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override {
      return real().find(name_space, id);
    }
    std::vector<ActivityRow> list(const ActivityFilter& filter) override { return real().list(filter); }
    std::vector<bool> change(std::span<const ActivityChange> changes) override {
      server_.write();
      return real().change(changes);
    }
    DueActivities due(std::int32_t limit) override {
      if (server_.dead()) throw Failure(Failure::Code::unavailable, "dead");
      return real().due(limit);
    }
    std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override {
      server_.write();
      return real().record(runs);
    }
    std::vector<ActivityRun> runs(const RunFilter& filter) override { return real().runs(filter); }
    std::int64_t purge_runs(Time before, std::int32_t limit) override { return real().purge_runs(before, limit); }

   private:
    ActivityRows& real() { return server_.store_->activities(); }
    Server& server_;
  };

  void write() {
    if (left_ == kForever) return;
    if (--left_ < 0) throw Failure(Failure::Code::unavailable, "dead");
  }

  static constexpr int kForever = 1'000'000;
  std::atomic<int> left_ = kForever;
  Rows rows_;
};

class ActivitiesTest : public ::testing::Test {
 protected:
  void start() { engine_ = start_engine(std::make_shared<Server>(store_), options_); }
  void stop() { engine_.reset(); }

  static ActivitySettings settings(const std::string& trigger,
                                   const std::string& start = R"("workflow":{"type":"report"})") {
    return ActivitySettings::parse(parse_json("{" + start + R"(,"trigger":)" + trigger + "}"));
  }
  static ActivitySettings cron(const std::string& expression, const std::string& more = "") {
    return settings(R"({"cron":{"expression":")" + expression + "\"" + (more.empty() ? "" : "," + more) + "}}");
  }

  Activities& activities() { return engine_->activities(); }
  ActivityView put(const ActivitySettings& activity) { return activities().put(kNamespace, "a", activity); }

  std::vector<ActivityRun> runs() {
    const auto page = activities().runs(kNamespace, "a", "", 1000);
    return page ? page->runs : std::vector<ActivityRun>();
  }
  std::vector<ActivityRun> runs_once_there(std::size_t count) {
    eventually([&] { return runs().size() >= count; });
    return runs();
  }
  std::vector<Execution> workflows() {
    ListFilter filter;
    filter.name_space = kNamespace;
    filter.kind = Kind::workflow;
    filter.limit = 1000;
    return store_->list(filter);
  }
  std::vector<std::string> workflow_ids() {
    std::vector<std::string> ids;
    for (const Execution& run : workflows()) ids.push_back(*run.idempotency_key);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // Nothing of a firing is under way.
  void settled() {
    eventually([&] {
      const auto due = store_->activities().due(100);
      const auto row = store_->activities().find(kNamespace, "a");
      return due.rows.empty() && row && row->document.find(R"("pending":[])") != std::string::npos;
    });
  }

  static void eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "it never came";
      std::this_thread::sleep_for(2ms);
    }
  }

  void complete_all_workflows() {
    ClaimRequest request;
    request.name_space = kNamespace;
    request.queues = {"default"};
    request.tasks = false;
    request.workflows = true;
    request.limit = 100;
    const auto claimed = store_->claim(std::span(&request, 1));
    for (const Execution& run : claimed.front().executions) {
      Turn turn;
      turn.token = {run.id, run.attempt, *run.lease_secret};
      turn.end = Turn::Completed{};
      ASSERT_TRUE(store_->commit_turns(std::span(&turn, 1)).front().accepted);
    }
  }

  std::vector<EventReceipt> deliver(const std::vector<std::string>& texts) {
    std::vector<CloudEvent> events;
    for (const std::string& text : texts) events.push_back(CloudEvent::parse(parse_json(text)));
    return await<std::vector<EventReceipt>>(
        [&](auto reply) { activities().deliver(kNamespace, std::move(events), std::move(reply)); });
  }
  static std::string event(const std::string& id, const std::string& data = "1") {
    const std::string id_member = id.empty() ? "" : R"("id":")" + id + "\",";
    return R"({"specversion":"1.0",)" + id_member + R"("source":"/shop","type":"paid","data":)" + data + "}";
  }
  std::optional<std::vector<ActivityRun>> backfill(Time from, Time to) {
    return await<std::optional<std::vector<ActivityRun>>>(
        [&](auto reply) { activities().backfill(kNamespace, "a", from, to, std::move(reply)); });
  }
  std::optional<Triggered> trigger(const std::string& id, const std::optional<std::string>& key) {
    return await<std::optional<Triggered>>(
        [&](auto reply) { activities().trigger(kNamespace, id, key, std::move(reply)); });
  }

  ManualClock clock_;
  std::shared_ptr<Store> store_ = open_memory_store(clock_);
  EngineOptions options_;
  std::unique_ptr<LocalEngine> engine_;
};

auto disposed(Disposition disposition) { return Field("disposition", &ActivityRun::disposition, disposition); }

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
            R"({"window":{"from":"2026-01-01T00:01:00.000Z","missed":25,"to":"2026-01-01T00:25:00.000Z"}})");
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

TEST_F(ActivitiesTest, BackfillMakesUpForWhatWasSkippedAndRunsNothingTwice) {
  start();
  put(cron("* * * * *", R"("misfire_grace":"30s")"));
  clock_.advance(1min);
  runs_once_there(1);
  settled();
  stop();
  clock_.advance(2min + 40s);
  start();
  runs_once_there(3);
  settled();
  const auto filled = backfill(ManualClock::kStart, clock_.now());
  EXPECT_THAT(*filled, ElementsAre(disposed(Disposition::caught_up), disposed(Disposition::duplicate),
                                   disposed(Disposition::caught_up), disposed(Disposition::caught_up)));
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::caught_up), disposed(Disposition::caught_up),
                                  disposed(Disposition::ran), disposed(Disposition::caught_up)));
  EXPECT_THAT(*backfill(ManualClock::kStart, clock_.now()), Each(disposed(Disposition::duplicate)));
  EXPECT_THAT(workflow_ids(), SizeIs(4));
  EXPECT_THROW(backfill(clock_.now(), clock_.now() + 1h), InvalidField);
  EXPECT_THROW(backfill(clock_.now() - std::chrono::days(300), clock_.now()), InvalidField);
}

TEST_F(ActivitiesTest, AnEventStartsOnceAndOtherContentIsAConflict) {
  start();
  put(settings(R"({"event":{"type":"paid"}})"));
  const auto first = deliver({event("e1"), event("e2"), event("")});
  EXPECT_THAT(first[0].started, ElementsAre("activity-a:e1"));
  EXPECT_THAT(first[1].started, ElementsAre("activity-a:e2"));
  EXPECT_TRUE(first[2].id_assigned);
  EXPECT_THAT(first[2].started, ElementsAre("activity-a:" + first[2].id));
  const auto again = deliver({event("e1"), event("e2", "2"), event("e1")});
  EXPECT_THAT(again[0].duplicates, ElementsAre("activity-a:e1"));
  EXPECT_THAT(again[1].conflicts, ElementsAre("activity-a:e2"));
  EXPECT_THAT(again[2].duplicates, ElementsAre("activity-a:e1"));
  EXPECT_THAT(workflow_ids(), SizeIs(3));
  EXPECT_THAT(runs(), AllOf(SizeIs(3), Each(disposed(Disposition::ran))));
}

TEST_F(ActivitiesTest, AnEventInAPauseIsSkippedAndMadeUpForWhenItComesAgain) {
  start();
  put(settings(R"({"event":{"type":"paid"}})"));
  activities().set_paused(kNamespace, "a", true);
  EXPECT_THAT(deliver({event("e1")})[0].started, IsEmpty());
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::skipped)));
  activities().set_paused(kNamespace, "a", false);
  EXPECT_THAT(deliver({event("e1")})[0].started, SizeIs(1));
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::caught_up)));
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
