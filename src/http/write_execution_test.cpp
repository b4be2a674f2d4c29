#include "http/write_execution.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/error.h"
#include "http/fake_engine.h"

namespace hapax::http {
namespace {

template <class Write, class Value>
Json written(Write write, const Value& value) {
  JsonWriter out;
  write(out, value);
  return parse_json(out.text());
}

std::vector<std::string> names(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [name, value] : object.members) out.push_back(name);
  return out;
}

bool has(const Json& object, std::string_view name) { return object.find(name) != nullptr; }

Execution running() {
  Execution execution = FakeEngine::task(1);
  execution.status = Status::running;
  execution.attempt = 2;
  execution.worker = "w";
  execution.lease_secret = LeaseSecret{};
  execution.lease_expires_at = from_ms(1000);
  execution.failed_attempts.push_back({1, "w0", from_ms(1), from_ms(2), {"E", "m"}, {}, true});
  return execution;
}

TEST(WriteExecution, APendingTaskHasAllMembersAndNullsForWhatIsNotThere) {
  const Json json = written(write_execution, FakeEngine::task(1));
  EXPECT_EQ(names(json), (std::vector<std::string>{"id",         "kind",       "namespace",        "type",
                                                   "queue",      "status",     "idempotency_key",  "input",
                                                   "priority",   "attempt",    "max_attempts",     "retry",
                                                   "timeout",    "deadline",   "concurrency_key",  "run_at",
                                                   "created_at", "started_at", "completed_at",     "cancel_requested",
                                                   "input_hash", "worker",     "lease_expires_at", "attempts"}));
  for (const char* name : {"idempotency_key", "timeout", "deadline", "started_at", "completed_at", "worker"}) {
    EXPECT_TRUE(json.find(name)->is(Json::Kind::null)) << name;
  }
  EXPECT_EQ(json.at("/retry/initial")->text, "1s");
}

TEST(WriteExecution, NothingReturnedIsNotTheJsonNull) {
  Execution execution = FakeEngine::task(1);
  execution.status = Status::completed;
  EXPECT_FALSE(has(written(write_execution, execution), "result"));
  execution.result = "null";
  EXPECT_TRUE(has(written(write_execution, execution), "result"));
}

TEST(WriteExecution, ARunningOneTellsWorkerLeaseEndAndFailedAttempts) {
  const Json json = written(write_execution, running());
  EXPECT_EQ(json.find("worker")->text, "w");
  EXPECT_EQ(json.find("lease_expires_at")->text, "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(json.at("/attempts/0/error/message")->text, "m");
  EXPECT_EQ(names(json.find("attempts")->items[0]),
            (std::vector<std::string>{"attempt", "worker", "started_at", "ended_at", "error"}));
}

TEST(WriteExecution, WhatAWorkerLeftBehindIsNotToldOfAClosedOne) {
  Execution execution = running();
  execution.status = Status::completed;
  const Json json = written(write_execution, execution);
  EXPECT_TRUE(json.find("worker")->is(Json::Kind::null));
  EXPECT_TRUE(json.find("lease_expires_at")->is(Json::Kind::null));
}

TEST(WriteClaim, OnlyTheClaimerGetsTheLease) {
  const Execution execution = running();
  const std::string token = LeaseToken{execution.id, 2, *execution.lease_secret}.to_string();
  const Json json = written(write_claim, execution);
  EXPECT_EQ(names(json), (std::vector<std::string>{"lease", "lease_expires_at", "attempt", "effect_key", "execution"}));
  EXPECT_EQ(json.find("lease")->text, token);
  JsonWriter out;
  write_execution(out, execution);
  EXPECT_EQ(out.text().find(token), std::string::npos);
}

TEST(WriteReceipt, CreatedAlwaysUnique) {
  Receipt receipt;
  receipt.created = true;
  const Json json = written(write_receipt, receipt);
  EXPECT_EQ(names(json), (std::vector<std::string>{"created", "deduplicated_from", "execution", "match"}));
  EXPECT_TRUE(json.find("deduplicated_from")->is(Json::Kind::null));
  EXPECT_TRUE(json.find("match")->is(Json::Kind::null));
}

TEST(WriteReceipt, ADuplicateSaysWhySinceWhenAndWhetherItIsStillThere) {
  Receipt receipt;
  receipt.execution = FakeEngine::task(1);
  receipt.match = Match{{{}, Strategy::caller_provided, {}}, from_ms(5), FakeEngine::id_of(9)};
  receipt.result_expired = true;
  receipt.dry_run = true;
  const Json json = written(write_receipt, receipt);
  EXPECT_EQ(json.find("deduplicated_from")->text, "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(names(*json.find("match")),
            (std::vector<std::string>{"strategy", "scope", "identity_hash", "expires_at", "superseded"}));
  EXPECT_TRUE(json.find("match")->find("identity_hash")->text.starts_with("sha256:"));
  EXPECT_TRUE(json.find("result_expired")->boolean);
  EXPECT_TRUE(json.find("dry_run")->boolean);
  EXPECT_EQ(names(*json.find("execution")),
            (std::vector<std::string>{"id", "kind", "namespace", "type", "queue", "status", "idempotency_key",
                                      "created_at", "completed_at", "input_hash"}));
}

Refusal refused(Refusal::Code code, Status status, std::optional<std::string> key = "payment-123") {
  Refusal refusal;
  refusal.code = code;
  refusal.existing = FakeEngine::task(1);
  refusal.existing->status = status;
  refusal.existing->idempotency_key = std::move(key);
  refusal.existing->finished_at = from_ms(0);
  refusal.existing->result = "{\"n\":1}";
  refusal.input_hash = InputHash{};
  return refusal;
}

TEST(WriteRefusal, ACompletedOwnerIsToldWithItsResult) {
  const Json json = written(write_refusal, refused(Refusal::Code::task_already_completed, Status::completed));
  EXPECT_EQ(json.find("error")->text, "TaskAlreadyCompleted");
  EXPECT_EQ(json.find("message")->text, "Task with key 'payment-123' already completed successfully");
  EXPECT_EQ(names(json), (std::vector<std::string>{"error", "message", "existing_execution_id", "status",
                                                   "completed_at", "result"}));
}

TEST(WriteRefusal, AnOpenOwnerHasNoResult) {
  const Json json = written(write_refusal, refused(Refusal::Code::task_already_exists, Status::pending, std::nullopt));
  EXPECT_EQ(json.find("error")->text, "TaskAlreadyExists");
  EXPECT_EQ(names(json), (std::vector<std::string>{"error", "message", "existing_execution_id", "status"}));
}

TEST(WriteRefusal, AConflictNamesBothHashesAndNoPayload) {
  const Json json = written(write_refusal, refused(Refusal::Code::idempotency_conflict, Status::completed));
  EXPECT_EQ(names(json), (std::vector<std::string>{"error", "message", "existing_execution_id", "status", "input_hash",
                                                   "existing_input_hash"}));
}

TEST(ErrorResponse, FailuresAre503AndSayWhetherToTryAgain) {
  const auto response = [](Failure::Code code) {
    return error_response(std::make_exception_ptr(Failure(code, "inside story")));
  };
  for (const auto code : {Failure::Code::unavailable, Failure::Code::outcome_unknown, Failure::Code::stopped}) {
    const Response answer = response(code);
    EXPECT_EQ(answer.status, 503);
    ASSERT_EQ(answer.headers.size(), 1U);
    EXPECT_EQ(answer.headers[0].first, "Retry-After");
  }
  EXPECT_NE(response(Failure::Code::stopped).body.find("ShuttingDown"), std::string::npos);
  EXPECT_NE(response(Failure::Code::corrupt).body.find("StoreCorrupt"), std::string::npos);
  EXPECT_EQ(response(Failure::Code::misuse).status, 500);
  const Response unexpected = error_response(std::make_exception_ptr(std::runtime_error("inside story")));
  EXPECT_EQ(unexpected.status, 500);
  EXPECT_EQ(unexpected.body.find("inside story"), std::string::npos);
}

}  // namespace
}  // namespace hapax::http
