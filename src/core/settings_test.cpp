#include "core/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/field.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

QueueSettings queue(std::string_view text) { return QueueSettings::parse(parse_json(text)); }
TypeSettings type(std::string_view text) { return TypeSettings::parse(parse_json(text)); }

template <class Settings>
std::string error_of(std::string_view text) {
  try {
    Settings::parse(parse_json(text), "/at");
    return "";
  } catch (const InvalidField& error) {
    return error.pointer() + " " + error.what();
  }
}

std::string queue_error(std::string_view text) { return error_of<QueueSettings>(text); }
std::string type_error(std::string_view text) { return error_of<TypeSettings>(text); }

constexpr std::string_view kFullQueue =
    R"({"retention":"30d","rate_limit":"100/sec","burst":500,"max_running":10,"concurrency_limit":2,)"
    R"("cancel_grace":"5s","idempotency_ttl":"1d","paused":true})";

constexpr std::string_view kFullType =
    R"({"queue":"payments","identity":"contextual","identity_fields":["/order_id","/a~1b"],"scope":"tenant",)"
    R"("reuse":"reject","on_duplicate":"error","idempotency_ttl":"12h","priority":-7,"max_attempts":5,)"
    R"("retry":{"initial":"2s","factor":1.5,"max":"5m"},"timeout":"30s","deadline":"1h"})";

TEST(QueueSettings, AreWrittenAsTheyWereRead) {
  EXPECT_EQ(queue(kFullQueue).to_json(), kFullQueue);
  EXPECT_EQ(queue("{}").to_json(), "{}");
  EXPECT_EQ(queue(queue(kFullQueue).to_json()), queue(kFullQueue));
}

TEST(QueueSettings, NameWhatIsSet) {
  EXPECT_THAT(queue(R"({"paused":false,"retention":"0"})").names(), ElementsAre("retention", "paused"));
  EXPECT_TRUE(queue(R"({"paused":null})").names().empty());
}

TEST(QueueSettings, BecomeAPolicyWithDefaults) {
  EXPECT_EQ(queue("{}").policy(), QueuePolicy{});
  const QueuePolicy policy = queue(kFullQueue).policy();
  EXPECT_TRUE(policy.paused);
  EXPECT_EQ(policy.rate_limit, (Rate{.count = 100, .per = 1s, .burst = 500}));
  EXPECT_EQ(policy.max_running, 10);
  EXPECT_EQ(policy.concurrency_limit, 2);
  EXPECT_EQ(policy.cancel_grace, 5s);
  EXPECT_EQ(policy.retention, Duration(std::chrono::days(30)));
  EXPECT_EQ(policy.idempotency_ttl, Duration(24h));
  EXPECT_EQ(queue(R"({"rate_limit":"7/min"})").policy().rate_limit->burst, 7);
}

TEST(QueueSettings, GoOverOthers) {
  const auto both = queue(R"({"max_running":1,"paused":false})").over(queue(kFullQueue));
  EXPECT_EQ(both.max_running, 1);
  EXPECT_EQ(both.paused, false);
  EXPECT_EQ(both.retention, Duration(std::chrono::days(30)));
  EXPECT_EQ(both.burst, 500);
  EXPECT_EQ(queue("{}").over(queue(kFullQueue)), queue(kFullQueue));
  EXPECT_EQ(queue(kFullQueue).over(queue("{}")), queue(kFullQueue));
}

TEST(QueueSettings, ABurstDoesNotOutliveItsRate) {
  const auto both = queue(R"({"rate_limit":"10/min"})").over(queue(kFullQueue));
  EXPECT_EQ(both.policy().rate_limit, (Rate{.count = 10, .per = 60s, .burst = 10}));
}

TEST(QueueSettings, BadValuesAreRefused) {
  EXPECT_EQ(queue_error(R"({"burst":5})"), "/at/burst goes only with a rate_limit");
  EXPECT_EQ(queue_error(R"({"max_running":0})"), "/at/max_running must be an integer from 1 to 1000000");
  EXPECT_EQ(queue_error(R"({"concurrency_limit":0})"), "/at/concurrency_limit must be an integer from 1 to 1000000");
  EXPECT_NE(queue_error(R"({"rate_limit":"100/sec","burst":0})"), "");
  EXPECT_NE(queue_error(R"({"rate_limit":"0/sec"})"), "");
  EXPECT_NE(queue_error(R"({"rate_limit":100})"), "");
  EXPECT_NE(queue_error(R"({"retention":30})"), "");
  EXPECT_NE(queue_error(R"({"retention":"-1d"})"), "");
  EXPECT_NE(queue_error(R"({"paused":"yes"})"), "");
  EXPECT_TRUE(queue_error(R"({"retenton":"1d"})").starts_with("/at/retenton is not known here"));
  EXPECT_EQ(queue_error("[]"), "/at must be an object");
}

TEST(QueueSettings, ABurstMustRefillWithinAYear) {
  EXPECT_EQ(queue_error(R"({"rate_limit":"1/day","burst":364})"), "");
  EXPECT_TRUE(queue_error(R"({"rate_limit":"1/day","burst":1000000})").starts_with("/at/burst is too large"));
  EXPECT_EQ(queue_error(R"({"rate_limit":"1000000000/sec","burst":1000000000})"), "");
}

TEST(TypeSettings, AreWrittenAsTheyWereRead) {
  EXPECT_EQ(type(kFullType).to_json(), kFullType);
  EXPECT_EQ(type("{}").to_json(), "{}");
  EXPECT_EQ(type(type(kFullType).to_json()), type(kFullType));
}

TEST(TypeSettings, NameWhatIsSet) {
  EXPECT_THAT(type(kFullType).names(),
              ElementsAre("queue", "identity", "identity_fields", "scope", "reuse", "on_duplicate", "idempotency_ttl",
                          "priority", "max_attempts", "retry", "timeout", "deadline"));
  EXPECT_TRUE(type(R"({"retry":{}})").names().empty());
}

TEST(TypeSettings, GoOverOthers) {
  const auto both = type(R"({"priority":3,"retry":{"factor":4}})").over(type(kFullType));
  EXPECT_EQ(both.priority, 3);
  EXPECT_EQ(both.queue, "payments");
  EXPECT_EQ(both.retry.policy(), (RetryPolicy{.initial = 2s, .factor = 4, .max = 5min}));
  EXPECT_EQ(type("{}").over(type(kFullType)), type(kFullType));
  EXPECT_EQ(type(kFullType).over(type("{}")), type(kFullType));
}

TEST(TypeSettings, AnotherStrategyDropsTheIdentityFieldsBelow) {
  const auto both = type(R"({"identity":"strict"})").over(type(kFullType));
  EXPECT_EQ(both.identity, Strategy::strict);
  EXPECT_EQ(both.identity_fields, std::nullopt);
  EXPECT_EQ(type(both.to_json()), both);
}

TEST(TypeSettings, EveryStrategyIsRead) {
  for (const char* word : {"caller_provided", "strict", "always_unique"}) {
    EXPECT_EQ(to_string(*type("{\"identity\":\"" + std::string(word) + "\"}").identity), word);
  }
  EXPECT_EQ(type_error(R"({"identity":"loose"})"),
            "/at/identity must be one of caller_provided, strict, contextual, always_unique, not \"loose\"");
}

TEST(TypeSettings, IdentityFieldsAndContextualGoTogether) {
  EXPECT_EQ(type_error(R"({"identity":"contextual"})"),
            "/at/identity_fields is required with \"identity\": \"contextual\"");
  EXPECT_EQ(type_error(R"({"identity_fields":["/a"]})"),
            "/at/identity_fields goes only with \"identity\": \"contextual\"");
  EXPECT_EQ(type_error(R"({"identity":"strict","identity_fields":["/a"]})"),
            "/at/identity_fields goes only with \"identity\": \"contextual\"");
  EXPECT_EQ(type_error(R"({"identity":"contextual","identity_fields":[]})"),
            "/at/identity_fields must name 1 to 64 fields of the input");
  EXPECT_EQ(type_error(R"({"identity":"contextual","identity_fields":["/a","b"]})"),
            "/at/identity_fields/1 must be a JSON pointer such as \"/order_id\", not \"b\"");
}

TEST(TypeSettings, BadValuesAreRefused) {
  EXPECT_EQ(type_error(R"({"priority":1001})"), "/at/priority must be an integer from -1000 to 1000");
  EXPECT_EQ(type_error(R"({"max_attempts":0})"), "/at/max_attempts must be an integer from 1 to 1000");
  EXPECT_EQ(type_error(R"({"timeout":"0"})"), "/at/timeout must be longer than 0");
  EXPECT_EQ(type_error(R"({"deadline":"0s"})"), "/at/deadline must be longer than 0");
  EXPECT_EQ(type_error(R"({"retry":{"factor":0.5}})"), "/at/retry/factor must be a number from 1 to 100");
  EXPECT_EQ(type_error(R"({"retry":{"factor":101}})"), "/at/retry/factor must be a number from 1 to 100");
  EXPECT_EQ(type_error(R"({"retry":{"initial":"2m","max":"1m"}})"),
            "/at/retry/max must not be shorter than \"initial\"");
  EXPECT_EQ(type_error(R"({"on_duplicate":"ignore"})"),
            "/at/on_duplicate must be one of return, error, not \"ignore\"");
  EXPECT_NE(type_error(R"({"reuse":"always"})"), "");
  EXPECT_NE(type_error(R"({"scope":""})"), "");
  EXPECT_NE(type_error(R"({"queue":"a\nb"})"), "");
  EXPECT_NE(type_error(R"({"retry":"2s"})"), "");
  EXPECT_NE(type_error(R"({"retries":3})"), "");
}

TEST(RetrySettings, BecomeAPolicyWithDefaults) {
  EXPECT_EQ(RetrySettings{}.policy(), (RetryPolicy{.initial = 1s, .factor = 2, .max = 60s}));
}

TEST(RetrySettings, ALongFirstPauseIsNotCutByTheDefaultCap) {
  RetrySettings retry;
  retry.initial = 5min;
  EXPECT_EQ(retry.policy().max, 5min);
  retry.max = 1min;
  EXPECT_EQ(retry.policy().max, 1min);
}

TEST(OnDuplicate, WordsAreReadBack) {
  EXPECT_EQ(to_string(OnDuplicate::give_back), "return");
  EXPECT_EQ(parse_on_duplicate("return"), OnDuplicate::give_back);
  EXPECT_EQ(parse_on_duplicate(to_string(OnDuplicate::error)), OnDuplicate::error);
  EXPECT_EQ(parse_on_duplicate("give_back"), std::nullopt);
}

TEST(TypeSettingsPatch, MergesMembersAndTakesBackNulls) {
  const auto before = TypeSettings::parse(parse_json(R"({"queue":"q","max_attempts":3,"retry":{"initial":"1s"}})"));
  const auto after = before.patched(parse_json(R"({"max_attempts":7,"queue":null,"retry":{"max":"9s"}})"));
  EXPECT_EQ(after.to_json(), R"({"max_attempts":7,"retry":{"initial":"1s","max":"9s"}})");
  EXPECT_EQ(after.patched(parse_json(R"({"retry":null})")).to_json(), R"({"max_attempts":7})");
  EXPECT_EQ(before.patched(parse_json("{}")), before);
}

TEST(TypeSettingsPatch, IsRefusedWhereTheResultWouldBe) {
  const TypeSettings none;
  EXPECT_THROW(none.patched(parse_json(R"({"max_attempts":0})")), InvalidField);
  EXPECT_THROW(none.patched(parse_json(R"({"unknown":null})")), InvalidField);
  EXPECT_THROW(none.patched(parse_json(R"({"identity":"contextual"})")), InvalidField);
  EXPECT_THROW(none.patched(parse_json("[]")), InvalidField);
}

TEST(TypeDocument, KeepsWhetherTheTypeWasDeclared) {
  TypeSettings settings;
  settings.max_attempts = 7;
  for (const TypeSettings& each : {TypeSettings(), settings}) {
    for (const bool declared : {true, false}) {
      const TypeDocument document{each, declared};
      EXPECT_EQ(TypeDocument::parse(parse_json(document.to_json())), document) << document.to_json();
    }
  }
  EXPECT_TRUE(TypeDocument::parse(parse_json(R"({"max_attempts":7})")).declared);  // of an earlier version: it was put
}

}  // namespace
}  // namespace hapax
