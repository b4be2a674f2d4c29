#include "wire/write_answer.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace hapax::wire {
namespace {

void write_one_claim(JsonWriter& out, const Claimed& claimed) { write_claim(out, claimed); }

ExecutionId id_of(std::uint8_t n) {
  ExecutionId id;
  id.bytes[15] = n;
  return id;
}

Execution task() {
  Execution execution;
  execution.id = id_of(1);
  execution.name_space = "default";
  execution.type = "t";
  execution.queue = "default";
  return execution;
}

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
  Execution execution = task();
  execution.status = Status::running;
  execution.attempt = 2;
  execution.worker = "w";
  execution.lease_secret = LeaseSecret{};
  execution.lease_expires_at = from_ms(1000);
  execution.failed_attempts.push_back({1, "w0", from_ms(1), from_ms(2), {"E", "m"}, {}, true});
  return execution;
}

TEST(WriteExecution, APendingTaskHasAllMembersAndNullsForWhatIsNotThere) {
  const Json json = written(write_execution, task());
  EXPECT_EQ(names(json), (std::vector<std::string>{"id",
                                                   "kind",
                                                   "namespace",
                                                   "type",
                                                   "queue",
                                                   "status",
                                                   "idempotency_key",
                                                   "priority",
                                                   "max_attempts",
                                                   "retry",
                                                   "timeout",
                                                   "created_at",
                                                   "concurrency_key",
                                                   "input_hash",
                                                   "input",
                                                   "run_at",
                                                   "attempt",
                                                   "deadline",
                                                   "attempts",
                                                   "started_at",
                                                   "completed_at",
                                                   "cancel_requested",
                                                   "worker",
                                                   "lease_expires_at"}));
  for (const char* name : {"idempotency_key", "timeout", "deadline", "started_at", "completed_at", "worker"}) {
    EXPECT_TRUE(json.find(name)->is(Json::Kind::null)) << name;
  }
  EXPECT_EQ(json.at("/retry/initial")->text, "1s");
}

TEST(WriteExecution, NothingReturnedIsNotTheJsonNull) {
  Execution execution = task();
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
  const Json json = written(write_one_claim, Claimed{execution, {}});
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
  receipt.execution = task();
  receipt.match = Match{{{}, Strategy::caller_provided, {}}, from_ms(5), id_of(9)};
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
  refusal.message = "the engine's sentence";
  refusal.existing = task();
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
  EXPECT_EQ(json.find("message")->text, "the engine's sentence");
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

}  // namespace
}  // namespace hapax::wire
