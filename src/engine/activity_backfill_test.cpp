#include "core/field.h"
#include "engine/activities_test.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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
  const auto again = *backfill(ManualClock::kStart, clock_.now());
  EXPECT_THAT(again, Each(disposed(Disposition::duplicate)));
  EXPECT_THAT(again, Contains(Field(&ActivityRun::why, "before it ran")));
  EXPECT_THAT(workflow_ids(), SizeIs(4));
  EXPECT_THROW(backfill(clock_.now(), clock_.now() + 1h), InvalidField);
  EXPECT_THROW(backfill(clock_.now() - std::chrono::days(300), clock_.now()), InvalidField);
}

TEST_F(ActivitiesTest, BackfillLeavesAloneWhatACompressedRunCovers) {
  miss_three("compress");
  const auto before = runs();
  const auto filled = backfill(ManualClock::kStart + 1min, clock_.now());
  EXPECT_THAT(*filled, AllOf(SizeIs(3), Each(AllOf(disposed(Disposition::duplicate),
                                                   Field(&ActivityRun::workflow_id, before.front().workflow_id),
                                                   Field(&ActivityRun::why, HasSubstr("before it was compressed"))))));
  EXPECT_EQ(runs(), before) << "the ledger says what covers them";
  EXPECT_THAT(workflow_ids(), SizeIs(1));
}

TEST_F(ActivitiesTest, BackfillByForceStartsWhatACompressedRunCoversAndTheLedgerSaysSo) {
  miss_three("compress");
  const auto forced = [&] { return *backfill(ManualClock::kStart + 1min, clock_.now(), true); };
  const auto by_force = AllOf(disposed(Disposition::caught_up), Field(&ActivityRun::why, HasSubstr("by force")));
  EXPECT_THAT(forced(), ElementsAre(by_force, by_force, disposed(Disposition::duplicate)))
      << "the compressed run itself has the id of the last one, and is open";
  EXPECT_THAT(runs(), ElementsAre(disposed(Disposition::compressed), by_force, by_force));
  EXPECT_THAT(workflow_ids(), SizeIs(3));

  complete_all_workflows();
  EXPECT_THAT(*backfill(ManualClock::kStart + 1min, clock_.now()), Each(disposed(Disposition::duplicate)));
  EXPECT_THAT(workflow_ids(), SizeIs(3));
  EXPECT_THAT(forced(), Each(by_force)) << "whatever covers it is closed";
  EXPECT_THAT(workflow_ids(), SizeIs(6));
  EXPECT_THAT(runs(), AllOf(SizeIs(3), Each(disposed(Disposition::caught_up))));
}

TEST_F(ActivitiesTest, BackfillByForceRunsWhatWasCaughtUpAgainButNotWhatRanInTime) {
  miss_three("catchup");
  clock_.advance(30s);
  runs_once_there(4);
  settled();
  complete_all_workflows();
  const auto fill = [&](bool force) { return *backfill(ManualClock::kStart + 1min, clock_.now(), force); };
  EXPECT_THAT(fill(false), AllOf(SizeIs(4), Each(disposed(Disposition::duplicate))));
  EXPECT_THAT(workflow_ids(), SizeIs(4));
  EXPECT_THAT(fill(true), ElementsAre(disposed(Disposition::caught_up), disposed(Disposition::caught_up),
                                      disposed(Disposition::caught_up), disposed(Disposition::duplicate)));
  EXPECT_THAT(workflow_ids(), SizeIs(7));
}

TEST_F(ActivitiesTest, BackfillKnowsWhatRanWhenTheWorkflowIsLongGone) {
  miss_three("catchup");
  complete_all_workflows();
  store_->release_identity(kNamespace, workflows().front().identity->hash);
  EXPECT_THAT(*backfill(ManualClock::kStart + 1min, clock_.now()), Each(disposed(Disposition::duplicate)));
  EXPECT_THAT(workflow_ids(), SizeIs(3));
}

// The schedule is paused right after the outage was found, before anything of the stretch was handled.
TEST_F(ActivitiesTest, BackfillKnowsWhatIsStillToBeCompressed) {
  start();
  put(cron("* * * * *", R"("misfire_grace":"1s","misfire_policy":"compress")"));
  settled();
  stop();
  clock_.advance(3min + 30s);
  ActivityRecord record = ActivityRecord::parse(*store_->activities().find(kNamespace, "a"));
  SchedulePosition::Missed missed;
  missed.from = missed.caught_up_from = ManualClock::kStart + 1min;
  missed.until = ManualClock::kStart + 3min;
  record.position.missed = missed;
  record.position.pause(clock_.now());
  record.next_due.reset();
  const ActivityChange change{record.row(), false, 1};
  ASSERT_TRUE(store_->activities().change(std::span(&change, 1)).front());
  start();
  EXPECT_THAT(*backfill(ManualClock::kStart + 1min, clock_.now()),
              AllOf(SizeIs(3), Each(AllOf(disposed(Disposition::duplicate),
                                          Field(&ActivityRun::workflow_id, "activity-a:2026-01-01T00:03:00+00:00")))));
  EXPECT_THAT(
      *backfill(ManualClock::kStart + 1min, clock_.now(), true),
      ElementsAre(disposed(Disposition::caught_up), disposed(Disposition::caught_up), disposed(Disposition::duplicate)))
      << "the compressed run needs its id";
  activities().set_paused(kNamespace, "a", false);
  eventually([&] { return workflow_ids().size() == 3; });
  settled();
  const auto compressed = engine_->find_workflow(kNamespace, "activity-a:2026-01-01T00:03:00+00:00");
  EXPECT_THAT(compressed->input, HasSubstr(R"("missed":3)"));
}

}  // namespace
}  // namespace hapax
