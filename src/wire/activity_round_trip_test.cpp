// Activities, their runs and events: what one side writes, the other reads back as the same values.
#include <gtest/gtest.h>

#include "core/failure.h"
#include "wire/activity.h"

namespace hapax::wire {
namespace {

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

template <class Value, class Write>
Json written(const Value& value, Write write) {
  JsonWriter out;
  write(out, value);
  return parse_json(out.text());
}

ActivityRun scheduled_run() {
  ActivityRun run;
  run.activity = "daily";
  run.at = kNoon;
  run.occurrence = format_occurrence(kNoon);
  run.disposition = Disposition::compressed;
  run.workflow_id = "activity-daily:" + run.occurrence;
  run.window = Window{kNoon - 48h, kNoon, 3};
  run.why = "3 firings were missed";
  run.recorded_at = kNoon + 90s;
  return run;
}

ActivityView full_view() {
  ActivityView view;
  view.id = "daily \"ü\"";
  view.settings = ActivitySettings::parse(parse_json(
      R"({"name":"Daily report","enabled":true,"workflow":{"type":"report","input":{"region":"eu"},"queue":"reports"},
          "trigger":{"cron":{"expression":"0 9 * * *","timezone":"Europe/Berlin","misfire_policy":"compress",
                             "misfire_grace":"5m","overlap":"skip","jitter":"10s"}},
          "dedupe_key_strategy":"compress"})"));
  view.paused = true;
  view.paused_at = kNoon;
  view.from_file = true;
  view.created_at = kNoon - 1h;
  view.updated_at = kNoon - 1min;
  view.next = {kNoon + 24h, kNoon + 48h};
  view.fired_ahead_until = kNoon + 23h;
  view.last = {scheduled_run()};
  view.last.front().activity = view.id;
  return view;
}

TEST(ActivityRoundTrip, AViewHasTheMembersOfItsSettingsBesideItsOwn) {
  const ActivityView view = full_view();
  const Json document = written(view, write_activity);
  EXPECT_EQ(document.find("name")->text, "Daily report");
  EXPECT_EQ(document.at("/trigger/cron/timezone")->text, "Europe/Berlin");
  EXPECT_EQ(document.find("dedupe_key_strategy")->text, "compress");
  const ActivityView read = read_activity(document);
  EXPECT_EQ(read.id, view.id);
  EXPECT_EQ(read.settings, view.settings);
  EXPECT_EQ(read.paused, view.paused);
  EXPECT_EQ(read.paused_at, view.paused_at);
  EXPECT_EQ(read.from_file, view.from_file);
  EXPECT_EQ(read.created_at, view.created_at);
  EXPECT_EQ(read.updated_at, view.updated_at);
  EXPECT_EQ(read.next, view.next);
  EXPECT_EQ(read.fired_ahead_until, view.fired_ahead_until);
  EXPECT_EQ(read.last, view.last);
}

TEST(ActivityRoundTrip, APageOfActivitiesKeepsItsCursor) {
  ActivitiesPage page;
  page.activities.push_back(full_view());
  page.next_cursor = "daily";
  const ActivitiesPage read = read_activities(written(page, write_activities));
  ASSERT_EQ(read.activities.size(), 1U);
  EXPECT_EQ(read.next_cursor, "daily");
  EXPECT_EQ(read_activities(written(ActivitiesPage{}, write_activities)).next_cursor, std::nullopt);
}

TEST(ActivityRoundTrip, ARunSaysWhatItWasFiredBy) {
  ActivityRun scheduled = scheduled_run();
  scheduled.activity.clear();
  EXPECT_EQ(read_run(written(scheduled, write_run)), scheduled);

  ActivityRun of_event;
  of_event.cause = Cause::event;
  of_event.occurrence = "order-1";
  of_event.at = of_event.recorded_at = kNoon;
  of_event.disposition = Disposition::skipped;
  of_event.why = "a run is still open";
  const Json written_event = written(of_event, write_run);
  EXPECT_EQ(written_event.find("event_id")->text, "order-1");
  EXPECT_EQ(written_event.find("scheduled_for"), nullptr);
  EXPECT_TRUE(written_event.find("workflow_id")->is(Json::Kind::null));
  EXPECT_EQ(read_run(written_event), of_event);

  ActivityRun of_source = of_event;
  of_source.occurrence = "/shop:order-1";
  of_source.workflow_id = "activity-daily:/shop:order-1";
  of_source.event = FiringEvent{"order-1", "/shop", {}};
  const Json written_source = written(of_source, write_run);
  EXPECT_EQ(written_source.find("event_id")->text, "order-1");
  EXPECT_EQ(written_source.find("event_source")->text, "/shop");
  EXPECT_EQ(read_run(written_source), of_source);

  ActivityRun by_hand;
  by_hand.cause = Cause::trigger;
  by_hand.occurrence = "trigger-k1";
  by_hand.workflow_id = "activity-daily:trigger-k1";
  by_hand.at = kNoon;
  by_hand.recorded_at = kNoon + 1s;
  const Json written_by_hand = written(by_hand, write_run);
  EXPECT_EQ(written_by_hand.find("triggered_at")->text, format_time(kNoon));
  EXPECT_EQ(written_by_hand.find("event_id"), nullptr);
  EXPECT_EQ(read_run(written_by_hand), by_hand);
}

TEST(ActivityRoundTrip, RunsOfABackfillHaveNoCursorAndAPageHas) {
  const std::vector<ActivityRun> runs{scheduled_run()};
  JsonWriter out;
  write_runs(out, runs);
  EXPECT_EQ(parse_json(out.text()).find("next_cursor"), nullptr);
  EXPECT_EQ(read_runs(parse_json(out.text())).runs.size(), 1U);
  RunsPage page{runs, "older"};
  JsonWriter paged;
  write_runs(paged, page);
  EXPECT_EQ(read_runs(parse_json(paged.text())).next_cursor, "older");
}

TEST(ActivityRoundTrip, ABackfillSaysForceOnlyWhereItIsMeant) {
  EXPECT_EQ(write_backfill({kNoon, kNoon + 1h}),
            R"({"from":"2026-01-27T12:00:00.000Z","to":"2026-01-27T13:00:00.000Z"})");
  EXPECT_EQ(write_backfill({kNoon, kNoon + 1h, true}),
            R"({"from":"2026-01-27T12:00:00.000Z","to":"2026-01-27T13:00:00.000Z","force":true})");
}

TEST(ActivityRoundTrip, AnEventTriggerKeepsWhatMakesEventsTheSame) {
  ActivityView view = full_view();
  view.settings = ActivitySettings::parse(parse_json(
      R"({"name":"n","workflow":{"type":"t"},"trigger":{"event":{"type":"paid","dedupe_by":"source_and_id"}}})"));
  const Json document = written(view, write_activity);
  EXPECT_EQ(document.at("/trigger/event/dedupe_by")->text, "source_and_id");
  EXPECT_EQ(document.find("dedupe_key_strategy"), nullptr);
  EXPECT_EQ(read_activity(document).settings, view.settings);
}

TEST(ActivityRoundTrip, ATriggerThatMadeNothingWasReplayed) {
  const Json again = written(Triggered{"activity-a:trigger-k", false}, write_triggered);
  EXPECT_TRUE(again.find("idempotency_replayed")->boolean);
  EXPECT_EQ(read_triggered(again).workflow_id, "activity-a:trigger-k");
  EXPECT_FALSE(read_triggered(again).created);
  EXPECT_TRUE(read_triggered(written(Triggered{"w", true}, write_triggered)).created);
}

TEST(ActivityRoundTrip, EventReceiptsStayInTheirOrder) {
  const std::vector<EventReceipt> receipts{{"e1", false, {"a", "b"}, {}, {}}, {"e2", true, {}, {"c"}, {"d"}}};
  JsonWriter out;
  write_event_receipts(out, receipts);
  const auto read = read_event_receipts(parse_json(out.text()));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].started, receipts[0].started);
  EXPECT_EQ(read[1].id, "e2");
  EXPECT_TRUE(read[1].id_assigned);
  EXPECT_EQ(read[1].duplicates, receipts[1].duplicates);
  EXPECT_EQ(read[1].conflicts, receipts[1].conflicts);
}

TEST(ActivityRoundTrip, AnAnswerOfAnotherShapeIsAFailure) {
  for (const char* text : {R"({})", R"({"id":"a","trigger":1})", R"([])", R"({"id":"a","next":[1]})"}) {
    EXPECT_THROW(read_activity(parse_json(text)), Failure) << text;
  }
  EXPECT_THROW(read_run(parse_json(R"({"disposition":"lost","recorded_at":"2026-01-01T00:00:00Z"})")), Failure);
  EXPECT_THROW(read_run(parse_json(R"({"disposition":"ran","recorded_at":"2026-01-01T00:00:00Z"})")), Failure);
  EXPECT_THROW(read_event_receipts(parse_json(R"({"events":[{"id":"e"}]})")), Failure);
}

}  // namespace
}  // namespace hapax::wire
