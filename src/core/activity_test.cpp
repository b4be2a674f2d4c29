#include "core/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/field.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

ActivitySettings parse(std::string_view text) { return ActivitySettings::parse(parse_json(text)); }

std::string error_of(std::string_view text) {
  try {
    ActivitySettings::parse(parse_json(text), "/at");
    return "";
  } catch (const InvalidField& error) {
    return error.pointer() + " " + error.what();
  }
}

// An activity with that trigger.
std::string triggered_by(std::string_view trigger) {
  return R"({"workflow":{"type":"report"},"trigger":)" + std::string(trigger) + "}";
}
std::string by_cron(std::string_view members) {
  return triggered_by(R"({"cron":{"expression":"0 9 * * *")" + std::string(members) + "}}");
}
std::string where(std::string_view demand) {
  return triggered_by(R"({"event":{"where":[)" + std::string(demand) + "]}}");
}

constexpr std::string_view kFullCron =
    R"({"name":"Nightly report","enabled":false,"workflow":{"type":"report","input":{"a":1},"queue":"reports"},)"
    R"("trigger":{"cron":{"expression":"0 9 * * mon-fri","timezone":"Europe/Berlin","misfire_policy":"catchup",)"
    R"("catchup_limit":3,"misfire_grace":"5m","overlap":"buffer_one","jitter":"30s"}}})";

constexpr std::string_view kFullEvent =
    R"({"enabled":true,"from_code":true,"tasks":[{"type":"resize","input":[1],"queue":"images"},{"type":"notify"}],)"
    R"("trigger":{"event":{"type":"com.example.uploaded","source":"/photos","subject":"cat.jpg","where":[)"
    R"({"pointer":"/size","equals":5},{"pointer":"/name","prefix":"cat"},{"pointer":"/draft","exists":false}],)"
    R"("dedupe_by":"source_and_id"}}})";

TEST(Activity, IsWrittenAsItWasRead) {
  EXPECT_EQ(parse(kFullCron).to_json(), kFullCron);
  EXPECT_EQ(parse(kFullEvent).to_json(), kFullEvent);
  EXPECT_EQ(parse(parse(kFullCron).to_json()), parse(kFullCron));
  EXPECT_EQ(parse(parse(kFullEvent).to_json()), parse(kFullEvent));
}

TEST(Activity, HasDefaults) {
  const ActivitySettings settings = parse(by_cron(""));
  EXPECT_EQ(settings.name, "");
  EXPECT_TRUE(settings.enabled);
  const auto& workflow = std::get<ActivitySettings::Workflow>(settings.start);
  EXPECT_EQ(workflow.type, "report");
  EXPECT_FALSE(workflow.input);
  EXPECT_FALSE(workflow.queue);
  ASSERT_NE(settings.cron(), nullptr);
  EXPECT_EQ(*settings.cron(), (CronTrigger{.expression = "0 9 * * *",
                                           .timezone = "UTC",
                                           .misfire_policy = MisfirePolicy::skip,
                                           .catchup_limit = 10,
                                           .misfire_grace = 60s,
                                           .overlap = Overlap::allow,
                                           .jitter = 0s}));
  EXPECT_EQ(settings.event(), nullptr);
}

TEST(Activity, KeepsItsInputCanonically) {
  const auto settings = parse(R"({"workflow":{"type":"t","input":{"b":5.0,"a":null}},"trigger":{"event":{}}})");
  EXPECT_EQ(std::get<ActivitySettings::Workflow>(settings.start).input, R"({"a":null,"b":5})");
  const auto null = parse(R"({"workflow":{"type":"t","input":null},"trigger":{"event":{}}})");
  EXPECT_EQ(std::get<ActivitySettings::Workflow>(null.start).input, "null");
}

TEST(Activity, StartsOneWorkflowOrAListOfTasks) {
  EXPECT_EQ(error_of(R"({"trigger":{"event":{}}})"), R"(/at needs "workflow", "tasks" or "signal")");
  EXPECT_EQ(error_of(R"({"workflow":{"type":"t"},"tasks":[{"type":"t"}],"trigger":{"event":{}}})"),
            R"(/at/tasks must not stand beside "workflow": it is one or the other)");
  EXPECT_EQ(error_of(R"({"tasks":[],"trigger":{"event":{}}})"), "/at/tasks must have 1 to 1000 tasks, not 0");
  EXPECT_EQ(error_of(R"({"tasks":[{"type":"t"},{}],"trigger":{"event":{}}})"), "/at/tasks/1/type is required");
  EXPECT_EQ(error_of(R"({"tasks":["t"],"trigger":{"event":{}}})"), "/at/tasks/0 must be an object");
  EXPECT_THAT(error_of(R"({"workflow":{"type":"t","key":1},"trigger":{"event":{}}})"),
              StartsWith("/at/workflow/key is not known here"));
}

TEST(Activity, HasOneTrigger) {
  EXPECT_EQ(error_of(R"({"workflow":{"type":"t"}})"), "/at/trigger is required");
  EXPECT_EQ(error_of(triggered_by("{}")), R"(/at/trigger needs "cron" or "event")");
  EXPECT_EQ(error_of(triggered_by(R"({"cron":{"expression":"@daily"},"event":{}})")),
            R"(/at/trigger/event must not stand beside "cron": it is one or the other)");
  EXPECT_THAT(error_of(triggered_by(R"({"interval":"5m"})")), StartsWith("/at/trigger/interval is not known here"));
}

TEST(Activity, RefusesWhatNoScheduleIs) {
  EXPECT_EQ(error_of(triggered_by(R"({"cron":{}})")), "/at/trigger/cron/expression is required");
  EXPECT_EQ(error_of(triggered_by(R"({"cron":{"expression":"75 * * * *"}})")),
            "/at/trigger/cron/expression the minute '75' is wrong: '75' must be 0 to 59");
  EXPECT_EQ(error_of(by_cron(R"(,"timezone":"Europe/Bonn")")),
            "/at/trigger/cron/timezone must be a time zone of the system's IANA database (tzdata), such as "
            R"("Europe/Berlin" or "UTC", not "Europe/Bonn")");
  EXPECT_EQ(error_of(by_cron(R"(,"misfire_policy":"drop")")),
            R"(/at/trigger/cron/misfire_policy must be one of skip, catchup, compress, not "drop")");
  EXPECT_EQ(error_of(by_cron(R"(,"overlap":"queue")")),
            R"(/at/trigger/cron/overlap must be one of allow, skip, buffer_one, not "queue")");
  EXPECT_EQ(error_of(by_cron(R"(,"catchup_limit":0)")),
            "/at/trigger/cron/catchup_limit must be an integer from 1 to 1000");
  EXPECT_THAT(error_of(by_cron(R"(,"misfire_grace":60)")),
              StartsWith("/at/trigger/cron/misfire_grace must be a duration"));
  EXPECT_THAT(error_of(by_cron(R"(,"jitter":"soon")")), StartsWith("/at/trigger/cron/jitter must be a duration"));
}

TEST(Activity, RefusesWhatNoDemandOnAnEventIs) {
  EXPECT_EQ(error_of(triggered_by(R"({"event":{"type":""}})")),
            "/at/trigger/event/type must not be empty; leave it out for any");
  EXPECT_EQ(error_of(where(R"({"equals":1})")), "/at/trigger/event/where/0/pointer is required");
  EXPECT_THAT(error_of(where(R"({"pointer":"size","equals":1})")),
              StartsWith("/at/trigger/event/where/0/pointer must be a JSON Pointer"));
  EXPECT_EQ(error_of(where(R"({"pointer":"/a"})")),
            R"(/at/trigger/event/where/0 needs one of "equals", "prefix" and "exists", not 0)");
  EXPECT_EQ(error_of(where(R"({"pointer":"/a","equals":1,"exists":true})")),
            R"(/at/trigger/event/where/0 needs one of "equals", "prefix" and "exists", not 2)");
  EXPECT_EQ(error_of(where(R"({"pointer":"/a","prefix":1})")), "/at/trigger/event/where/0/prefix must be a string");
  EXPECT_EQ(error_of(where(R"({"pointer":"/a","exists":"yes"})")),
            "/at/trigger/event/where/0/exists must be true or false");
}

TEST(Activity, TakesAnEqualsOfNull) {
  const auto settings = parse(where(R"({"pointer":"/a","equals":null})"));
  EXPECT_EQ(settings.event()->where.at(0).test, EventTrigger::Where::Test::equals);
  EXPECT_EQ(settings.event()->where.at(0).value, "null");
}

TEST(Activity, DedupeKeyStrategyEqualsTheMisfirePolicy) {
  const auto with = [](std::string_view policy, std::string_view strategy) {
    std::string text = by_cron(policy.empty() ? "" : R"(,"misfire_policy":")" + std::string(policy) + '"');
    text.insert(text.size() - 1, R"(,"dedupe_key_strategy":")" + std::string(strategy) + '"');
    return text;
  };
  constexpr std::array<std::string_view, 3> kPolicies{"skip", "catchup", "compress"};
  for (const std::string_view policy : kPolicies) {
    for (const std::string_view strategy : kPolicies) {
      EXPECT_EQ(error_of(with(policy, strategy)),
                policy == strategy
                    ? ""
                    : "/at/dedupe_key_strategy must equal the misfire_policy, which is \"" + std::string(policy) +
                          "\", not \"" + std::string(strategy) + "\"; one of them is enough");
    }
    const ActivitySettings alone = parse(with("", policy));
    EXPECT_EQ(to_string(*alone.dedupe_key_strategy), policy);
    EXPECT_EQ(to_string(alone.cron()->misfire_policy), policy) << "it stands for the policy that is not given";
  }
  EXPECT_FALSE(parse(by_cron(R"(,"misfire_policy":"compress")")).dedupe_key_strategy) << "only what was given is kept";
  EXPECT_EQ(error_of(with("skip", "per_window")),
            R"(/at/dedupe_key_strategy must be one of skip, catchup, compress, not "per_window")");
}

TEST(Activity, DedupeKeyStrategyIsRefusedWithEvents) {
  constexpr std::string_view kBegin = R"({"workflow":{"type":"t"},"trigger":{"event":{}},"dedupe_key_strategy":)";
  EXPECT_THAT(error_of(std::string(kBegin) + R"("catchup"})"),
              StartsWith("/at/dedupe_key_strategy must not stand beside an event trigger"));
  EXPECT_EQ(error_of(std::string(kBegin) + "null}"), "");
  EXPECT_THAT(error_of(std::string(kBegin) + R"("per_event"})"), StartsWith("/at/dedupe_key_strategy must be one of"));
}

TEST(Activity, EventsAreTheSameByTheirIdOrBySourceAndId) {
  const auto by = [](const std::string& word) { return triggered_by(R"({"event":{"dedupe_by":")" + word + R"("}})"); };
  EXPECT_EQ(parse(triggered_by(R"({"event":{}})")).event()->dedupe_by, DedupeBy::id);
  EXPECT_EQ(parse(by("id")).event()->dedupe_by, DedupeBy::id);
  const ActivitySettings settings = parse(by("source_and_id"));
  EXPECT_EQ(settings.event()->dedupe_by, DedupeBy::source_and_id);
  EXPECT_EQ(ActivitySettings::parse(parse_json(settings.to_json())), settings);
  EXPECT_EQ(error_of(by("source")), R"(/at/trigger/event/dedupe_by must be one of id, source_and_id, not "source")");
  EXPECT_THAT(error_of(by_cron(R"(,"dedupe_by":"id")")), StartsWith("/at/trigger/cron/dedupe_by is not known here"));
}

TEST(Activity, IdIsANameWithoutAColon) {
  EXPECT_NO_THROW(check_activity_id("nightly report/2"));
  EXPECT_NO_THROW(check_activity_id(std::string(kMaxActivityId, 'x')));
  EXPECT_THROW(check_activity_id(""), InvalidField);
  EXPECT_THROW(check_activity_id(std::string(kMaxActivityId + 1, 'x')), InvalidField);
  EXPECT_THROW(check_activity_id("a\nb"), InvalidField);
  // Else the activity `a` with the event `b:c` and the activity `a:b` with the event `c` would be one workflow.
  EXPECT_THROW(check_activity_id("a:b"), InvalidField);
}

TEST(Activity, WorkflowIdsAreWhatTheContractSays) {
  const Time time = *parse_time("2026-03-01T09:00:00Z");
  EXPECT_EQ(format_occurrence(time), "2026-03-01T09:00:00+00:00");
  EXPECT_EQ(activity_workflow_id("report", format_occurrence(time)), "activity-report:2026-03-01T09:00:00+00:00");
  EXPECT_EQ(activity_workflow_id("report", "event-7"), "activity-report:event-7");
}

TEST(Activity, WordsAreReadBack) {
  for (const auto policy : {MisfirePolicy::skip, MisfirePolicy::catchup, MisfirePolicy::compress}) {
    EXPECT_EQ(parse_misfire_policy(to_string(policy)), policy);
  }
  for (const auto overlap : {Overlap::allow, Overlap::skip, Overlap::buffer_one}) {
    EXPECT_EQ(parse_overlap(to_string(overlap)), overlap);
  }
  for (const auto disposition : {Disposition::ran, Disposition::skipped, Disposition::caught_up,
                                 Disposition::compressed, Disposition::duplicate}) {
    EXPECT_EQ(parse_disposition(to_string(disposition)), disposition);
  }
  EXPECT_EQ(to_string(Disposition::caught_up), "caught_up");
  EXPECT_EQ(parse_disposition("Ran"), std::nullopt);
}

}  // namespace
}  // namespace hapax
