#include "cli/activity_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);
const Paint kPlain(false);

ActivitySettings settings(const std::string& trigger, const std::string& start = R"("workflow":{"type":"report"})") {
  return ActivitySettings::parse(parse_json("{" + start + R"(,"trigger":)" + trigger + "}"));
}

ActivityView daily() {
  ActivityView view;
  view.id = "daily";
  view.settings = settings(R"({"cron":{"expression":"0 9 * * *","timezone":"Europe/Berlin","jitter":"5s"}})");
  view.next = {kNoon + 5min, kNoon + 24h};
  return view;
}

TEST(ActivityWords, SayWhatFiresIt) {
  EXPECT_EQ(trigger_in_words(daily().settings), "0 9 * * * Europe/Berlin");
  EXPECT_EQ(trigger_in_words(settings(R"({"event":{}})")), "event of any type");
  EXPECT_EQ(
      trigger_in_words(settings(R"({"event":{"type":"paid","source":"/shop","subject":"s","where":[
                {"pointer":"/a","equals":"x"},{"pointer":"/b","prefix":"y"},{"pointer":"","exists":true},
                {"pointer":"/c","exists":false}]}})")),
      "event paid from /shop about s where /a = \"x\" where /b begins with y where data exists where /c is absent");
}

TEST(ActivityWords, SayWhatItStarts) {
  const std::string trigger = R"({"event":{}})";
  EXPECT_EQ(start_in_words(settings(trigger)), "workflow report");
  EXPECT_EQ(start_in_words(settings(trigger, R"("tasks":[{"type":"pick"}])")), "task pick");
  EXPECT_EQ(start_in_words(settings(trigger, R"("tasks":[{"type":"pick"},{"type":"pack"}])")), "2 tasks");
}

TEST(ActivityWords, SayWhenItFiresNext) {
  ActivityView view = daily();
  EXPECT_EQ(next_in_words(view, kNoon).text, "in 5m");
  view.paused = true;
  EXPECT_EQ(next_in_words(view, kNoon).text, "paused");
  view.settings.enabled = false;
  EXPECT_EQ(next_in_words(view, kNoon).text, "off");
  ActivityView on_event;
  on_event.settings = settings(R"({"event":{}})");
  EXPECT_EQ(next_in_words(on_event, kNoon).text, "-");
}

TEST(ActivityWords, ARunSaysWhatFiredItWhatItBecameAndWhy) {
  ActivityRun late;
  late.at = kNoon;
  late.disposition = Disposition::compressed;
  late.workflow_id = "activity-daily:x";
  late.window = Window{kNoon - 1h, kNoon, 3};
  late.why = "late";
  ActivityRun of_event;
  of_event.cause = Cause::event;
  of_event.occurrence = "e\x1b[1";
  of_event.disposition = Disposition::skipped;
  ActivityRun by_hand;
  by_hand.cause = Cause::trigger;
  by_hand.at = kNoon;
  const std::string text = run_table(std::vector{late, of_event, by_hand}).render(kPlain);
  EXPECT_THAT(text, HasSubstr("2026-01-27T12:00:00.000Z          compressed  activity-daily:x  late; 3 missed from "
                              "2026-01-27T11:00:00.000Z to 2026-01-27T12:00:00.000Z"));
  EXPECT_THAT(text, AllOf(HasSubstr("skipped"), HasSubstr("by hand 2026-01-27T12:00:00.000Z"), Not(HasSubstr("\x1b"))));
}

TEST(ActivityWords, ShowOneWithItsNextAndLastFirings) {
  ActivityView view = daily();
  view.paused = view.from_file = view.settings.from_code = true;
  view.paused_at = kNoon - 1h;
  view.last.emplace_back();
  view.last.back().at = kNoon - 24h;
  EXPECT_THAT(render_activity(view, kNoon, kPlain, {}),
              AllOf(HasSubstr("skip firings later than 1m"), HasSubstr("up to 5s"), HasSubstr("60m ago"),
                    HasSubstr("from the file"), HasSubstr("from the code"),
                    HasSubstr("2026-01-27T12:05:00.000Z  in 5m"), HasSubstr("2026-01-26T12:00:00.000Z  ran")));
}

TEST(ActivityWords, AnEventThatStartsNothingSaysSo) {
  EXPECT_EQ(describe_receipt({"e", false, {}, {}, {}}), "no activity matches it\n");
  EXPECT_EQ(describe_receipt({"e", false, {"a"}, {"b"}, {"c"}}),
            "started a\nalready started b\nconflict: another event with this id had started c\n");
}

}  // namespace
}  // namespace hapax
