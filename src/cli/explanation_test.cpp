#include "cli/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Time kNow = from_ms(1'800'000'000'000);

ExplanationFacts facts(Strategy strategy, bool created, Status owner = Status::pending) {
  ExplanationFacts facts;
  facts.now = kNow;
  facts.request.type = facts.type.name = "charge";
  Receipt receipt;
  receipt.created = created;
  receipt.dry_run = true;
  receipt.execution.queue = "payments";
  receipt.execution.status = owner;
  receipt.execution.created_at = kNow - std::chrono::minutes(5);
  if (strategy != Strategy::always_unique) {
    receipt.match = Match{};
    receipt.match->identity.strategy = strategy;
  }
  facts.result = receipt;
  return facts;
}

Receipt& receipt(ExplanationFacts& facts) { return std::get<Receipt>(facts.result); }

std::string line(const Explanation& explanation, const std::string& about) {
  for (const auto& each : explanation.lines) {
    if (each.about == about) return each.says;
  }
  return "nothing about " + about;
}

TEST(Explanation, SaysWhichRuleChoseTheStrategy) {
  auto by_key = facts(Strategy::caller_provided, true);
  by_key.request.idempotency_key = "order-1";
  EXPECT_EQ(line(explain(by_key), "identity"),
            "caller_provided, because the submission has a key, 'order-1': the key alone decides what is the same");

  auto by_request = facts(Strategy::strict, true);
  by_request.request.identity = Strategy::strict;
  EXPECT_THAT(line(explain(by_request), "identity"), StartsWith("strict, because the submission says so"));

  auto by_type = facts(Strategy::contextual, true);
  by_type.type.declared = true;
  by_type.type.settings.identity = Strategy::contextual;
  by_type.type.settings.identity_fields = {{"/order_id", "/day"}};
  by_type.type.identity = {Strategy::contextual, TypeIdentity::Source::file};
  EXPECT_EQ(line(explain(by_type), "identity"),
            "contextual, as 'charge' is declared in the configuration file: the same /order_id, /day is the same task");

  auto by_default = facts(Strategy::strict, true);
  by_default.type.declared = true;
  by_default.type.identity = {Strategy::strict, TypeIdentity::Source::declared};
  EXPECT_THAT(line(explain(by_default), "identity"),
              StartsWith("strict, because 'charge' is declared and names no identity of its own"));

  EXPECT_EQ(line(explain(facts(Strategy::always_unique, true)), "identity"),
            "always_unique, because 'charge' is not declared, and [identity] undeclared says so: "
            "no two submissions are ever the same");
}

TEST(Explanation, ANewIdentityHasNoOwner) {
  const auto explanation = explain(facts(Strategy::strict, true));
  EXPECT_EQ(explanation.outcome, "create");
  EXPECT_EQ(line(explanation, "owner"), "none: this identity is new");
  EXPECT_EQ(line(explanation, "outcome"), "a new task in the queue 'payments'");
  EXPECT_EQ(line(explanation, "scope"), "type (the default): unique among tasks of type 'charge'");
}

TEST(Explanation, ACompletedOwnerStandsForTheSubmission) {
  auto given = facts(Strategy::caller_provided, false, Status::completed);
  receipt(given).execution.result = "42";
  const auto explanation = explain(given);
  EXPECT_EQ(explanation.outcome, "duplicate");
  EXPECT_THAT(line(explanation, "owner"), HasSubstr("completed, submitted 2027-01-15T07:55:00.000Z (5m ago)"));
  EXPECT_EQ(line(explanation, "reuse"),
            "allow_failed (the default): an owner that is completed stands for this submission");
  EXPECT_EQ(line(explanation, "outcome"),
            "a duplicate: nothing is created, the answer is the owner with its result 42");
}

TEST(Explanation, AFailedOwnerMakesWay) {
  auto given = facts(Strategy::caller_provided, true);
  receipt(given).match->superseded = ExecutionId{};
  given.superseded = Execution{};
  given.superseded->status = Status::failed;
  const auto explanation = explain(given);
  EXPECT_EQ(explanation.outcome, "create");
  EXPECT_EQ(line(explanation, "reuse"), "allow_failed (the default): an owner that is failed is superseded");
  EXPECT_THAT(line(explanation, "outcome"), HasSubstr("in place of the owner"));
}

TEST(Explanation, OnDuplicateErrorIsARefusal) {
  auto given = facts(Strategy::caller_provided, false, Status::running);
  given.request.on_duplicate = OnDuplicate::error;
  const auto explanation = explain(given);
  EXPECT_EQ(explanation.outcome, "already_exists");
  EXPECT_THAT(line(explanation, "outcome"), HasSubstr("TaskAlreadyExists"));
}

TEST(Explanation, AConflictShowsBothHashes) {
  auto given = facts(Strategy::caller_provided, true);
  given.request.idempotency_key = "order-1";
  Refusal refusal;
  refusal.code = Refusal::Code::idempotency_conflict;
  refusal.existing = Execution{};
  refusal.existing->input_hash = hash_input("1");
  refusal.input_hash = hash_input("2");
  given.result = refusal;
  const auto explanation = explain(given);
  EXPECT_EQ(explanation.outcome, "conflict");
  EXPECT_EQ(line(explanation, "input"),
            "this one is " + hash_input("2").to_string() + ", the owner's is " + hash_input("1").to_string());
}

TEST(Explanation, AnExpiredEntryIsNobodys) {
  auto given = facts(Strategy::caller_provided, true);
  given.request.idempotency_key = "order-1";
  given.found = FoundIdentity{};
  EXPECT_THAT(line(explain(given), "owner"), HasSubstr("has expired"));
}

TEST(Explanation, TheExpiryDoesNotBindAnOpenTask) {
  auto created = facts(Strategy::caller_provided, true);
  created.type.settings.idempotency_ttl = std::chrono::hours(24);
  EXPECT_EQ(line(explain(created), "expires"), "1d after it is created, but not while it is open");

  auto found = facts(Strategy::caller_provided, false, Status::running);
  found.request.idempotency_key = "k";
  found.found = FoundIdentity{};
  found.found->entry.expires_at = kNow + std::chrono::hours(24);
  EXPECT_THAT(line(explain(found), "expires"), HasSubstr("(in 24h), but not while the task is open"));
}

}  // namespace
}  // namespace hapax
