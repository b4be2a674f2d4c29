#include <algorithm>
#include <thread>

#include "conformance/store_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ActivityStore : public StoreTest {
 protected:
  ActivityRows& activities() { return store().activities(); }

  static ActivityRow row(const std::string& id, std::int64_t revision = 0,
                         std::optional<Time> next_due = std::nullopt) {
    return {.name_space = "default", .id = id, .document = R"({"n":1})", .next_due = next_due, .revision = revision};
  }

  bool put(const ActivityRow& row) { return change(activities(), {row, false}); }
  bool remove(const std::string& id, std::int64_t revision) { return change(activities(), {row(id, revision), true}); }
  static bool change(ActivityRows& activities, const ActivityChange& change) {
    return activities.change({&change, 1}).at(0);
  }

  ActivityRun run(const std::string& activity, Time at, Disposition disposition = Disposition::ran) const {
    const std::string occurrence = format_time(at);
    return {.name_space = "default",
            .activity = activity,
            .occurrence = occurrence,
            .at = at,
            .disposition = disposition,
            .workflow_id = "activity-" + activity + ":" + occurrence,
            .recorded_at = now()};
  }

  ActivityRun record(const ActivityRun& run) { return record(activities(), run); }
  static ActivityRun record(ActivityRows& activities, const ActivityRun& run) {
    return activities.record({&run, 1}).at(0);
  }

  std::vector<ActivityRun> runs(const std::string& activity, const std::string& name_space = "default") {
    return activities().runs({.name_space = name_space, .activity = activity});
  }
};

std::vector<std::string> ids_of(const std::vector<ActivityRow>& rows) {
  std::vector<std::string> ids;
  for (const ActivityRow& row : rows) ids.push_back(row.id);
  return ids;
}

std::vector<std::string> occurrences_of(const std::vector<ActivityRun>& runs) {
  std::vector<std::string> occurrences;
  for (const ActivityRun& run : runs) occurrences.push_back(run.occurrence);
  return occurrences;
}

// Runs the work on that many threads at once.
template <class Work>
void on_threads(int count, Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

// ---- definitions

using ActivityRevision = ActivityStore;
HAPAX_FOR_ALL_STORES(ActivityRevision);

TEST_P(ActivityRevision, CountsFromOne) {
  EXPECT_EQ(activities().find("default", "a"), std::nullopt);
  EXPECT_TRUE(put(row("a")));
  EXPECT_EQ(activities().find("default", "a"), row("a", 1));
  EXPECT_TRUE(put(row("a", 1, now())));
  EXPECT_EQ(activities().find("default", "a"), row("a", 2, now()));
}

TEST_P(ActivityRevision, OfBeforeChangesNothing) {
  put(row("a"));
  put(row("a", 1, now()));
  ActivityRow other = row("a", 1);
  other.document = "{}";
  EXPECT_FALSE(put(other));
  other.revision = 0;
  EXPECT_FALSE(put(other));
  other.revision = 3;
  EXPECT_FALSE(put(other));
  EXPECT_FALSE(remove("a", 1));
  EXPECT_FALSE(remove("a", 0));
  EXPECT_EQ(activities().find("default", "a"), row("a", 2, now()));
}

TEST_P(ActivityRevision, OfOneThatIsNotThereChangesNothing) {
  EXPECT_FALSE(put(row("a", 1)));
  EXPECT_EQ(activities().find("default", "a"), std::nullopt);
}

TEST_P(ActivityRevision, ChangeSentAgainIsRecognised) {
  EXPECT_TRUE(put(row("a")));
  EXPECT_TRUE(put(row("a")));
  EXPECT_TRUE(put(row("a", 1, now())));
  EXPECT_TRUE(put(row("a", 1, now())));
  EXPECT_EQ(activities().find("default", "a"), row("a", 2, now()));
  EXPECT_FALSE(put(row("a")));
  EXPECT_TRUE(remove("a", 2));
  EXPECT_TRUE(remove("a", 2));
  EXPECT_EQ(activities().find("default", "a"), std::nullopt);
}

TEST_P(ActivityRevision, WhatIsRecognisedMustBeTheSameInEverything) {
  ActivityRow wanted = row("a", 0, now());
  put(wanted);
  ActivityRow other = wanted;
  other.document = "{}";
  EXPECT_FALSE(put(other));
  other = wanted;
  other.by_event = true;
  EXPECT_FALSE(put(other));
  other = wanted;
  other.next_due.reset();
  EXPECT_FALSE(put(other));
}

TEST_P(ActivityRevision, BeginsAnewAfterARemoval) {
  put(row("a"));
  put(row("a", 1));
  EXPECT_TRUE(remove("a", 2));
  EXPECT_TRUE(put(row("a")));
  EXPECT_EQ(activities().find("default", "a"), row("a", 1));
}

TEST_P(ActivityRevision, EachOfABatchIsDecidedByItselfAndInOrder) {
  put(row("a"));
  const std::vector<ActivityChange> changes{{row("b")},    {row("a", 7)}, {row("a", 1, now())}, {row("a", 2), true},
                                            {row("c", 1)}, {row("a")},    {row("d"), true},     {row("b", 1, now())}};
  EXPECT_THAT(activities().change(changes), ElementsAre(true, false, true, true, false, true, true, true));
  EXPECT_THAT(activities().list({.name_space = "default"}), ElementsAre(row("a", 1), row("b", 2, now())));
  EXPECT_THAT(activities().change({}), IsEmpty());
}

TEST_P(ActivityRevision, OfEightWhoChangeItAtOnceOneDoes) {
  const auto second = second_handle();
  put(row("a"));
  for (std::int64_t revision = 1; revision <= 20; ++revision) {
    std::vector<char> did(8);
    on_threads(8, [&](int i) {
      ActivityRow mine = row("a", revision);
      mine.document = "{\"by\":" + std::to_string(i) + "}";
      did[static_cast<std::size_t>(i)] = change(i % 2 ? second->activities() : activities(), {mine, false});
    });
    ASSERT_EQ(std::count(did.begin(), did.end(), 1), 1);
    const std::string winner = std::to_string(std::find(did.begin(), did.end(), 1) - did.begin());
    ASSERT_EQ(activities().find("default", "a")->document, "{\"by\":" + winner + "}");
    ASSERT_EQ(activities().find("default", "a")->revision, revision + 1);
  }
}

TEST_P(ActivityRevision, OfEightWhoDefineItAtOnceOneDoes) {
  const auto second = second_handle();
  for (int round = 0; round < 20; ++round) {
    std::vector<char> did(8);
    on_threads(8, [&](int i) {
      ActivityRow mine = row("a" + std::to_string(round));
      mine.document = "{\"by\":" + std::to_string(i) + "}";
      did[static_cast<std::size_t>(i)] = change(i % 2 ? second->activities() : activities(), {mine, false});
    });
    ASSERT_EQ(std::count(did.begin(), did.end(), 1), 1);
  }
}

// As servers do that find the same ones due: all in one order, or in any.
TEST_P(ActivityRevision, BatchesOfTheSameOnesDoNotGetInEachOthersWay) {
  const auto second = second_handle();
  constexpr int kCount = 50;
  std::vector<ActivityChange> first;
  for (int i = 0; i < kCount; ++i) first.push_back({row("a" + std::to_string(i))});
  activities().change(first);
  for (std::int64_t revision = 1; revision <= 5; ++revision) {
    std::vector<std::vector<bool>> did(4);
    on_threads(4, [&](int thread) {
      std::vector<ActivityChange> changes;
      for (int i = 0; i < kCount; ++i) {
        const int n = thread % 2 ? i : kCount - 1 - i;
        changes.push_back({row("a" + std::to_string(n), revision, now() + Duration(thread))});
      }
      did[static_cast<std::size_t>(thread)] = (thread < 2 ? second->activities() : activities()).change(changes);
    });
    int done = 0;
    for (const auto& one : did) done += static_cast<int>(std::count(one.begin(), one.end(), true));
    ASSERT_EQ(done, kCount);
  }
  for (const ActivityRow& row : activities().list({.name_space = "default"})) EXPECT_EQ(row.revision, 6);
}

using ActivityList = ActivityStore;
HAPAX_FOR_ALL_STORES(ActivityList);

TEST_P(ActivityList, KeepsNamespacesApart) {
  ActivityRow mine = row("a"), theirs = row("a");
  theirs.name_space = "tenant";
  theirs.document = "{}";
  EXPECT_TRUE(put(mine));
  EXPECT_TRUE(put(theirs));
  mine.revision = theirs.revision = 1;
  EXPECT_EQ(activities().find("default", "a"), mine);
  EXPECT_EQ(activities().find("tenant", "a"), theirs);
  EXPECT_EQ(activities().find("", "a"), std::nullopt);
  EXPECT_THAT(activities().list({.name_space = "tenant"}), ElementsAre(theirs));
  EXPECT_THAT(activities().list({}), ElementsAre(mine, theirs));
  remove("a", 1);
  EXPECT_THAT(activities().list({}), ElementsAre(theirs));
}

TEST_P(ActivityList, IsInTheOrderOfBytesAndGoesOnFromACursor) {
  for (const char* id : {"b", "a", "B", "ä", "aa", "a:1"}) put(row(id));
  EXPECT_THAT(ids_of(activities().list({.name_space = "default"})), ElementsAre("B", "a", "a:1", "aa", "b", "ä"));
  EXPECT_THAT(ids_of(activities().list({.name_space = "default", .after = "a", .limit = 2})), ElementsAre("a:1", "aa"));
  EXPECT_THAT(activities().list({.name_space = "default", .after = "ä"}), IsEmpty());
  EXPECT_THAT(activities().list({.name_space = "default", .limit = 0}), IsEmpty());
  EXPECT_THAT(activities().list({.limit = 3}), SizeIs(3));
}

TEST_P(ActivityList, CursorWithoutANamespaceIsRefused) { EXPECT_THROW(activities().list({.after = "a"}), Failure); }

TEST_P(ActivityList, CanBeOfThoseThatEventsStart) {
  ActivityRow event = row("e");
  event.by_event = true;
  put(row("c"));
  put(event);
  put(row("f"));
  event.revision = 1;
  EXPECT_THAT(activities().list({.name_space = "default", .by_event = true}), ElementsAre(event));
  EXPECT_THAT(activities().list({.by_event = true}), ElementsAre(event));
  EXPECT_THAT(ids_of(activities().list({.by_event = false})), ElementsAre("c", "f"));
  event.by_event = false;
  put(event);
  EXPECT_THAT(activities().list({.by_event = true}), IsEmpty());
}

TEST_P(ActivityList, NamesAndDocumentsComeBackAsTheyWere) {
  for (const std::string& odd :
       {std::string("a/b:c d"), std::string("'; DROP TABLE activities; --"), std::string("%_\\"),
        std::string("\xF0\x9F\x90\x98 née"), std::string("{}\",\n\t"), std::string("x\0y", 3)}) {
    ActivityRow strange{.name_space = odd, .id = odd + "!", .document = odd};
    EXPECT_TRUE(put(strange));
    strange.revision = 1;
    EXPECT_EQ(activities().find(odd, odd + "!"), strange);
    EXPECT_THAT(activities().list({.name_space = odd}), ElementsAre(strange));
    ActivityRun run{.name_space = odd,
                    .activity = odd + "!",
                    .occurrence = odd + "?",
                    .cause = Cause::event,
                    .at = now(),
                    .disposition = Disposition::duplicate,
                    .workflow_id = odd,
                    .why = odd,
                    .recorded_at = now()};
    EXPECT_EQ(record(run), run);
    EXPECT_THAT(runs(odd + "!", odd), ElementsAre(run));
  }
}

TEST_P(ActivityList, BigDocumentsComeBackWhole) {
  ActivityRow big = row("a", 0, now());
  for (std::size_t i = 0; i < 3'000'000; ++i) big.document.push_back(static_cast<char>('a' + i % 23));
  EXPECT_TRUE(put(big));
  EXPECT_TRUE(put(big)) << "sent again";
  big.revision = 1;
  EXPECT_EQ(activities().find("default", "a"), big);
  EXPECT_THAT(activities().due(1).rows, ElementsAre(big));
  big.document += "!";
  EXPECT_TRUE(put(big));
  big.revision = 2;
  EXPECT_THAT(activities().list({}), ElementsAre(big));
}

TEST_P(ActivityList, WhatOneHandleDoesTheOtherSees) {
  const auto second = second_handle();
  put(row("a", 0, now()));
  EXPECT_EQ(second->activities().find("default", "a"), row("a", 1, now()));
  EXPECT_THAT(second->activities().due(10).rows, ElementsAre(row("a", 1, now())));
  record(run("a", now()));
  EXPECT_THAT(second->activities().runs({.name_space = "default", .activity = "a"}), ElementsAre(run("a", now())));
}

// ---- what is due

using ActivityDue = ActivityStore;
HAPAX_FOR_ALL_STORES(ActivityDue);

TEST_P(ActivityDue, IsNothingWhereNothingIs) {
  EXPECT_EQ(activities().due(10), DueActivities{});
  put(row("a"));
  EXPECT_EQ(activities().due(10), DueActivities{});
}

TEST_P(ActivityDue, IsWhatHasItsTimeBehindIt) {
  put(row("past", 0, now() - 1h));
  put(row("now", 0, now()));
  put(row("soon", 0, now() + 1ms));
  put(row("later", 0, now() + 1h));
  put(row("never"));
  const DueActivities due = activities().due(10);
  EXPECT_THAT(due.rows, ElementsAre(row("past", 1, now() - 1h), row("now", 1, now())));
  EXPECT_EQ(due.next_due, now() + 1ms);
  clock_.advance(1ms);
  EXPECT_THAT(ids_of(activities().due(10).rows), ElementsAre("past", "now", "soon"));
}

TEST_P(ActivityDue, IsEarliestFirstThenByNamespaceAndId) {
  ActivityRow tenant = row("a", 0, now());
  tenant.name_space = "another";
  for (const char* id : {"b", "a", "c"}) put(row(id, 0, now()));
  put(tenant);
  put(row("z", 0, now() - 1ms));
  tenant.revision = 1;
  EXPECT_THAT(activities().due(10).rows, ElementsAre(row("z", 1, now() - 1ms), tenant, row("a", 1, now()),
                                                     row("b", 1, now()), row("c", 1, now())));
}

TEST_P(ActivityDue, StopsAtTheLimitAndSaysWhatIsNext) {
  for (int i = 0; i < 5; ++i) put(row(std::string(1, static_cast<char>('a' + i)), 0, now() - 5h + i * 1h));
  for (int limit = 0; limit < 5; ++limit) {
    const DueActivities due = activities().due(limit);
    EXPECT_THAT(due.rows, SizeIs(limit));
    EXPECT_EQ(due.next_due, now() - 5h + limit * 1h);
  }
  EXPECT_THAT(activities().due(5).rows, SizeIs(5));
  EXPECT_EQ(activities().due(5).next_due, std::nullopt);
  EXPECT_EQ(activities().due(-1).next_due, now() - 5h);
}

TEST_P(ActivityDue, NextIsAmongTheDueWhereSeveralAreDueAtOnce) {
  put(row("a", 0, now()));
  put(row("b", 0, now()));
  EXPECT_EQ(activities().due(1).next_due, now());
  EXPECT_EQ(activities().due(2).next_due, std::nullopt);
}

TEST_P(ActivityDue, FollowsEveryChange) {
  put(row("a", 0, now()));
  put(row("a", 1, now() + 1h));
  EXPECT_THAT(activities().due(10).rows, IsEmpty());
  EXPECT_EQ(activities().due(10).next_due, now() + 1h);
  put(row("a", 2));
  EXPECT_EQ(activities().due(10), DueActivities{});
  put(row("a", 3, now() - 1h));
  EXPECT_THAT(ids_of(activities().due(10).rows), ElementsAre("a"));
  remove("a", 4);
  EXPECT_EQ(activities().due(10), DueActivities{});
}

// ---- the run ledger

using RunLedger = ActivityStore;
HAPAX_FOR_ALL_STORES(RunLedger);

TEST_P(RunLedger, KeepsAllThatIsSaidOfARun) {
  ActivityRun all = run("a", now() - 1h, Disposition::compressed);
  all.window = Window{now() - 5h, now() - 1h, 5};
  all.why = "the servers were down";
  all.recorded_at = {};
  ActivityRun stored = all;
  stored.recorded_at = now();
  EXPECT_EQ(record(all), stored);
  EXPECT_THAT(runs("a"), ElementsAre(stored));
  ActivityRun none = run("a", now(), Disposition::skipped);
  none.workflow_id.clear();
  none.cause = Cause::trigger;
  EXPECT_EQ(record(none), none);
  EXPECT_THAT(runs("a"), ElementsAre(none, stored));
}

TEST_P(RunLedger, KeepsTheEventThatFired) {
  ActivityRun fired = run("a", now());
  fired.cause = Cause::event;
  fired.occurrence = "/shop/Ä:e1";
  fired.event = FiringEvent{"e1", "/shop/Ä", {sha256("paid")}};
  EXPECT_EQ(record(fired), fired);
  ActivityRun again = fired;
  again.event->hash = {sha256("refunded")};
  EXPECT_EQ(record(again), fired);
  EXPECT_THAT(runs("a"), ElementsAre(fired));

  ActivityRun skipped = run("b", now(), Disposition::skipped);
  skipped.cause = Cause::event;
  skipped.event = FiringEvent{"e2", "/shop", {sha256("first")}};
  record(skipped);
  ActivityRun made_up = skipped;
  made_up.disposition = Disposition::caught_up;
  made_up.event = FiringEvent{"e2", "/shop", {sha256("second")}};
  EXPECT_EQ(record(made_up), made_up);
  EXPECT_THAT(runs("b"), ElementsAre(made_up));
}

TEST_P(RunLedger, FirstOneRecordedHolds) {
  const ActivityRun first = record(run("a", now()));
  clock_.advance(1h);
  for (const Disposition other : {Disposition::ran, Disposition::skipped, Disposition::caught_up,
                                  Disposition::compressed, Disposition::duplicate}) {
    ActivityRun again = run("a", now() - 1h, other);
    again.at = now();
    again.why = "too late";
    EXPECT_EQ(record(again), first);
  }
  EXPECT_THAT(runs("a"), ElementsAre(first));
}

TEST_P(RunLedger, SkippedOrCompressedOneGivesWayToOneThatIsCaughtUp) {
  for (const Disposition before : {Disposition::skipped, Disposition::compressed}) {
    const std::string name(to_string(before));
    ActivityRun first = run(name, now(), before);
    first.window = Window{now(), now(), 1};
    first.why = "too late";
    record(first);
    clock_.advance(1h);
    ActivityRun caught_up = run(name, now() - 1h, Disposition::caught_up);
    caught_up.why = "filled up by hand";
    EXPECT_EQ(record(caught_up), caught_up);
    EXPECT_THAT(runs(name), ElementsAre(caught_up));
    clock_.advance(1h);
    EXPECT_EQ(record(first), caught_up);
    EXPECT_EQ(record(caught_up), caught_up) << "sent again";
    EXPECT_EQ(activities().purge_runs(caught_up.recorded_at + 1ms, 10), 1);
  }
}

TEST_P(RunLedger, NothingGivesWayToAnythingElse) {
  const auto at = [&](int i) { return now() + i * 1s; };
  int i = 0;
  for (const Disposition first : {Disposition::ran, Disposition::skipped, Disposition::caught_up,
                                  Disposition::compressed, Disposition::duplicate}) {
    for (const Disposition second :
         {Disposition::ran, Disposition::skipped, Disposition::compressed, Disposition::duplicate}) {
      record(run("a", at(i), first));
      EXPECT_EQ(record(run("a", at(i), second)).disposition, first);
      ++i;
    }
  }
}

TEST_P(RunLedger, EachOfABatchIsRecordedInOrder) {
  record(run("a", now() - 1h));
  const std::vector<ActivityRun> batch{
      run("a", now(), Disposition::skipped),   run("b", now()),
      run("a", now(), Disposition::ran),       run("a", now() - 1h, Disposition::skipped),
      run("a", now(), Disposition::caught_up), run("a", now(), Disposition::skipped)};
  const auto stored = activities().record(batch);
  std::vector<Disposition> dispositions;
  for (const ActivityRun& run : stored) dispositions.push_back(run.disposition);
  EXPECT_THAT(dispositions, ElementsAre(Disposition::skipped, Disposition::ran, Disposition::skipped, Disposition::ran,
                                        Disposition::caught_up, Disposition::caught_up));
  EXPECT_THAT(runs("a"), SizeIs(2));
  EXPECT_THAT(activities().record({}), IsEmpty());
}

TEST_P(RunLedger, OfEightWhoRecordAFiringAtOnceAllHearTheSame) {
  const auto second = second_handle();
  for (int round = 0; round < 20; ++round) {
    std::vector<ActivityRun> heard(8);
    on_threads(8, [&](int i) {
      ActivityRun mine = run("a", now() + round * 1s);
      mine.why = "said by " + std::to_string(i);
      heard[static_cast<std::size_t>(i)] = record(i % 2 ? second->activities() : activities(), mine);
    });
    for (const ActivityRun& one : heard) ASSERT_EQ(one, heard[0]);
    ASSERT_THAT(activities().runs({.name_space = "default", .activity = "a", .limit = 1}), ElementsAre(heard[0]));
  }
  EXPECT_THAT(runs("a"), SizeIs(20));
}

TEST_P(RunLedger, OfThoseWhoCatchUpAtOnceOneReplacesTheSkippedRow) {
  const auto second = second_handle();
  for (int round = 0; round < 20; ++round) {
    const Time at = now() + round * 1s;
    record(run("a", at, Disposition::skipped));
    std::vector<ActivityRun> heard(8);
    on_threads(8, [&](int i) {
      ActivityRun mine = run("a", at, i < 6 ? Disposition::caught_up : Disposition::skipped);
      mine.why = "said by " + std::to_string(i);
      heard[static_cast<std::size_t>(i)] = record(i % 2 ? second->activities() : activities(), mine);
    });
    for (std::size_t i = 0; i < 6; ++i) ASSERT_EQ(heard[i], heard[0]);
    ASSERT_EQ(heard[0].disposition, Disposition::caught_up);
    ASSERT_THAT(activities().runs({.name_space = "default", .activity = "a", .limit = 1}), ElementsAre(heard[0]));
  }
}

TEST_P(RunLedger, PagesNewestFirstInExactOrderEvenAtEqualTimes) {
  std::vector<ActivityRun> all;
  for (const char* occurrence : {"e1", "e10", "e2", "ä", "E"}) {
    for (const Duration ago : {0ms, 1ms, 1000ms}) {
      ActivityRun one = run("a", now() - ago);
      one.occurrence = occurrence + std::string("@") + std::to_string(ago.count());
      record(one);
      all.push_back(one);
    }
  }
  record(run("b", now()));
  std::sort(all.begin(), all.end(), [](const ActivityRun& x, const ActivityRun& y) {
    return std::tie(y.at, y.occurrence) < std::tie(x.at, x.occurrence);
  });
  EXPECT_EQ(runs("a"), all);
  for (const std::int32_t limit : {1, 2, 4, 7, 15}) {
    std::vector<ActivityRun> paged;
    RunFilter filter{.name_space = "default", .activity = "a", .limit = limit};
    for (;;) {
      const auto page = activities().runs(filter);
      if (page.empty()) break;
      ASSERT_LE(std::ssize(page), limit);
      paged.insert(paged.end(), page.begin(), page.end());
      filter.after = RunFilter::Position{page.back().at, page.back().occurrence};
    }
    EXPECT_EQ(paged, all);
  }
  EXPECT_THAT(activities().runs({.name_space = "default", .activity = "a", .limit = 0}), IsEmpty());
}

TEST_P(RunLedger, CursorNeedNotBeAmongTheRows) {
  for (int i = 0; i < 3; ++i) record(run("a", now() + i * 2s));
  const auto rest = activities().runs(
      {.name_space = "default", .activity = "a", .after = RunFilter::Position{now() + 3s, "anything"}});
  EXPECT_THAT(rest, ElementsAre(run("a", now() + 2s), run("a", now())));
}

TEST_P(RunLedger, KeepsActivitiesAndNamespacesApart) {
  ActivityRun theirs = run("a", now(), Disposition::skipped);
  theirs.name_space = "tenant";
  record(run("a", now()));
  record(run("ab", now()));
  EXPECT_EQ(record(theirs), theirs);
  EXPECT_THAT(runs("a"), ElementsAre(run("a", now())));
  EXPECT_THAT(runs("ab"), SizeIs(1));
  EXPECT_THAT(runs("a", "tenant"), ElementsAre(theirs));
  EXPECT_THAT(runs("b"), IsEmpty());
}

TEST_P(RunLedger, OutlivesTheActivity) {
  put(row("a"));
  record(run("a", now()));
  remove("a", 1);
  EXPECT_THAT(runs("a"), ElementsAre(run("a", now())));
  put(row("a"));
  EXPECT_EQ(record(run("a", now(), Disposition::skipped)).disposition, Disposition::ran);
}

TEST_P(RunLedger, PurgeTakesWhatWasRecordedBeforeTheOldestFirst) {
  const Time start = now();
  for (int i = 0; i < 6; ++i) {
    record(run("a", start - i * 1s));  // what is recorded later was scheduled earlier
    clock_.advance(1s);
  }
  EXPECT_EQ(activities().purge_runs(start, 10), 0);
  EXPECT_EQ(activities().purge_runs(start + 4s, 3), 3);
  EXPECT_THAT(occurrences_of(runs("a")),
              ElementsAre(format_time(start - 3s), format_time(start - 4s), format_time(start - 5s)));
  EXPECT_EQ(activities().purge_runs(start + 4s, 3), 1);
  EXPECT_EQ(activities().purge_runs(start + 4s, 3), 0);
  EXPECT_EQ(activities().purge_runs(now(), 0), 0);
  EXPECT_THAT(runs("a"), SizeIs(2));
  EXPECT_EQ(activities().purge_runs(now(), 10), 2);
}

TEST_P(RunLedger, PurgedFiringIsRecordedAnew) {
  record(run("a", now(), Disposition::skipped));
  clock_.advance(1h);
  EXPECT_EQ(activities().purge_runs(now(), 10), 1);
  EXPECT_EQ(record(run("a", now() - 1h)), run("a", now() - 1h));
}

TEST_P(RunLedger, RecordsWhileOthersPurge) {
  const auto second = second_handle();
  on_threads(4, [&](int thread) {
    for (int i = 0; i < 100; ++i) {
      if (thread == 0) {
        activities().purge_runs(now() + 1h, 3);
      } else {
        const ActivityRun mine = run("a", now() + i % 5 * 1s);
        ASSERT_EQ(record(thread == 1 ? second->activities() : activities(), mine), mine);
      }
    }
  });
}

}  // namespace
}  // namespace hapax
