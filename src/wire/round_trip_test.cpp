// What one side writes, the other reads back as the same values.
#include <gtest/gtest.h>

#include "core/failure.h"
#include "support/describe.h"
#include "support/filled.h"
#include "support/task.h"
#include "wire/error_code.h"
#include "wire/read_answer.h"
#include "wire/shown_fields.h"
#include "wire/write_answer.h"

namespace hapax::wire {
namespace {

void write_one_claim(JsonWriter& out, const Claimed& claimed) { write_claim(out, claimed); }

using namespace std::chrono_literals;

const Time kNoon = from_ms(1'769'515'200'000);

template <class Value, class Write, class Read>
auto through(const Value& value, Write write, Read read) {
  JsonWriter out;
  write(out, value);
  return read(parse_json(out.text()));
}

Execution task(Status status = Status::pending) {
  Execution execution;
  execution.id = test_id(1);
  execution.name_space = "tenant \"ü\"";
  execution.type = "charge";
  execution.queue = "payments";
  execution.input = R"({"a":[1,9007199254740993,null],"b":"\n"})";
  execution.input_hash = hash_input(execution.input);
  execution.created_at = kNoon;
  execution.run_at = kNoon + 5s;
  execution.status = status;
  return execution;
}

// With everything that an execution in this status can have and the API tells.
Execution full_task(Status status) {
  Execution execution = task(status);
  execution.idempotency_key = "order-1";
  execution.parent = test_id(9);
  execution.parent_workflow_id = "orders/\u00fc";
  execution.step = 3;
  execution.priority = -7;
  execution.concurrency_key = "customer-3";
  execution.max_attempts = 5;
  execution.retry.initial = 250ms;
  execution.retry.factor = 1.5;
  execution.retry.max = 90min;
  execution.timeout = 30s;
  execution.deadline_at = kNoon + 24h;
  execution.attempt = 2;
  execution.started_at = kNoon + 6s;
  execution.error = AttemptError{"Declined", "no \"funds\""};
  execution.failed_attempts.push_back(
      {1, "w0", kNoon + 1s, kNoon + 2s, AttemptError{"LeaseExpired", "the worker is gone"}, {}, false});
  if (is_closed(status)) execution.finished_at = kNoon + 7s;
  if (status == Status::completed) execution.result = R"({"paid":true})";
  if (status == Status::running) {
    execution.worker = "w1";
    execution.lease_expires_at = kNoon + 1min;
  }
  return execution;
}

constexpr Status kStatuses[] = {Status::pending, Status::running,   Status::suspended, Status::completed,
                                Status::failed,  Status::cancelled, Status::timed_out};

TEST(RoundTrip, AnExecutionInEveryStatus) {
  for (const Status status : kStatuses) {
    EXPECT_EQ(through(task(status), write_execution, read_execution), task(status));
    EXPECT_EQ(through(full_task(status), write_execution, read_execution), full_task(status));
  }
}

// Whatever the API shows of a filled execution comes back, field by field.
TEST(RoundTrip, EveryShownFieldOfAnExecution) {
  auto sent = filled<Execution>();
  sent.input_hash = hash_input(sent.input);
  const Execution read = through(sent, write_execution, read_execution);
  std::vector<std::string> wanted, found;
  const auto shown_in = [](std::vector<std::string>& out) {
    return [&out]<class Value>(const Field& field, const Value& value) {
      if (field.shown == Field::Shown::no) return;
      JsonWriter json;
      json.begin_object();
      WriteShown one(json);
      one(field, value);
      json.end_object();
      out.emplace_back(json.text());
    };
  };
  fields(shown_in(wanted), sent);
  fields(shown_in(found), read);
  fields(shown_in(wanted), sent.run);
  fields(shown_in(found), read.run);
  EXPECT_EQ(found, wanted);
  EXPECT_GE(found.size(), 20U);
}

TEST(RoundTrip, NothingReturnedStaysApartFromNull) {
  Execution execution = task(Status::completed);
  EXPECT_EQ(through(execution, write_execution, read_execution).result, std::nullopt);
  execution.result = "null";
  EXPECT_EQ(through(execution, write_execution, read_execution).result, "null");
}

TEST(RoundTrip, ThatACancelWasRequestedIsToldButNotWhen) {
  Execution execution = full_task(Status::running);
  execution.cancel_requested_at = kNoon + 3s;
  EXPECT_TRUE(through(execution, write_execution, read_execution).cancel_requested_at.has_value());
}

TEST(RoundTrip, AClaimCarriesItsLease) {
  Execution execution = full_task(Status::running);
  execution.lease_secret = test_secret(3);
  const Claimed read = through(Claimed{execution, {}}, write_one_claim, read_claim);
  EXPECT_EQ(read.execution, execution);
  EXPECT_TRUE(read.events.empty());
}

Receipt receipt_of(Execution execution) {
  Receipt receipt;
  receipt.execution = std::move(execution);
  return receipt;
}

void expect_same(const Receipt& read, const Receipt& written) {
  EXPECT_EQ(read.created, written.created);
  EXPECT_EQ(read.dry_run, written.dry_run);
  EXPECT_EQ(read.result_expired, written.result_expired);
  EXPECT_EQ(read.result_omitted, written.result_omitted);
  EXPECT_EQ(read.execution, written.execution);
  ASSERT_EQ(read.match.has_value(), written.match.has_value());
  if (!written.match) return;
  EXPECT_EQ(read.match->identity, written.match->identity);
  EXPECT_EQ(read.match->expires_at, written.match->expires_at);
  EXPECT_EQ(read.match->superseded, written.match->superseded);
}

TEST(RoundTrip, Receipts) {
  Receipt created = receipt_of(task());
  created.created = true;
  Receipt matched = receipt_of(full_task(Status::completed));
  matched.execution.identity = Identity{key_hash("charge", "order-1"), Strategy::caller_provided, Scope::parse("shop")};
  matched.match = Match{*matched.execution.identity, kNoon + 24h, test_id(4)};
  matched.dry_run = true;
  for (const Receipt& receipt : {created, matched}) {
    const SubmitResult read = through(SubmitResult(receipt), write_submit_result, read_submit_result);
    ASSERT_TRUE(std::holds_alternative<Receipt>(read));
    expect_same(std::get<Receipt>(read), receipt);
  }
}

TEST(RoundTrip, AReceiptOfAPurgedExecutionIsWhatItsTombstoneTells) {
  LedgerEntry entry;
  entry.identity = {key_hash("charge", "k"), Strategy::caller_provided, {}};
  entry.name_space = "default";
  entry.owner = test_id(5);
  entry.input_hash = hash_input("1");
  entry.created_at = kNoon;
  entry.tombstone = Tombstone{Kind::task, "charge", "payments", "k", Status::failed, kNoon, kNoon + 1s};
  Receipt receipt = receipt_of(execution_of(entry));
  receipt.result_expired = true;
  receipt.match = Match{entry.identity, kNoon + 24h, {}};
  const SubmitResult read = through(SubmitResult(receipt), write_submit_result, read_submit_result);
  expect_same(std::get<Receipt>(read), receipt);
}

TEST(RoundTrip, WhatIsOmittedIsSaid) {
  Receipt receipt;
  receipt.result_omitted = true;
  receipt.execution.id = test_id(5);
  receipt.execution.name_space = "default";
  receipt.execution.type = "charge";
  receipt.execution.queue = "payments";
  receipt.execution.status = Status::completed;
  receipt.execution.created_at = receipt.execution.run_at = kNoon;
  receipt.execution.finished_at = kNoon + 1s;
  receipt.execution.input_hash = hash_input("1");
  const SubmitResult read = through(SubmitResult(receipt), write_submit_result, read_submit_result);
  expect_same(std::get<Receipt>(read), receipt);

  Refusal refusal;
  refusal.code = Refusal::Code::task_already_completed;
  refusal.existing = receipt.execution;
  refusal.result_omitted = true;
  const SubmitResult refused = through(SubmitResult(refusal), write_submit_result, read_submit_result);
  EXPECT_TRUE(std::get<Refusal>(refused).result_omitted);
  EXPECT_EQ(std::get<Refusal>(refused).existing->result, std::nullopt);
}

TEST(RoundTrip, RefusalsOfEveryCode) {
  for (int code = 0; code <= static_cast<int>(Refusal::Code::task_already_completed); ++code) {
    Refusal refusal;
    refusal.code = static_cast<Refusal::Code>(code);
    refusal.message = "a sentence";
    const bool conflict = refusal.code == Refusal::Code::idempotency_conflict;
    if (refusal.code < Refusal::Code::idempotency_conflict) {
      refusal.pointer = "/input/order_id";
    } else {
      refusal.existing = full_task(Status::completed);
      refusal.input_hash = hash_input("2");
    }
    const SubmitResult result = through(SubmitResult(refusal), write_submit_result, read_submit_result);
    const auto& read = std::get<Refusal>(result);
    EXPECT_EQ(read.code, refusal.code);
    EXPECT_EQ(read.message, refusal.message);
    EXPECT_EQ(read.pointer, refusal.pointer);
    ASSERT_EQ(read.existing.has_value(), refusal.existing.has_value());
    if (!refusal.existing) continue;
    EXPECT_EQ(read.existing->id, refusal.existing->id);
    EXPECT_EQ(read.existing->status, refusal.existing->status);
    if (refusal.code == Refusal::Code::task_already_completed) {
      EXPECT_EQ(read.existing->result, refusal.existing->result);
    }
    if (conflict) {
      EXPECT_EQ(read.input_hash, refusal.input_hash);
      EXPECT_EQ(read.existing->input_hash, refusal.existing->input_hash);
    }
  }
}

TEST(RoundTrip, ControlOutcomesOfEveryKind) {
  const auto round = [](const ControlOutcome& outcome) {
    return through(
        outcome, [](JsonWriter& out, const ControlOutcome& o) { write_control(out, test_id(1).to_string(), o); },
        read_control_outcome);
  };
  for (const bool replayed : {false, true}) {
    ControlOutcome outcome;
    outcome.replayed = replayed;
    outcome.changed = !replayed;
    outcome.status = Status::cancelled;
    outcome.execution = test_id(1);
    EXPECT_EQ(round(outcome), outcome);
    for (int kind = 1; kind <= static_cast<int>(ControlOutcome::Kind::key_conflict); ++kind) {
      ControlOutcome refused;
      refused.kind = static_cast<ControlOutcome::Kind>(kind);
      refused.replayed = replayed;
      if (refused.kind == ControlOutcome::Kind::identity_taken) refused.other = test_id(2);
      if (refused.kind == ControlOutcome::Kind::no_such_step) refused.steps = 4;
      if (refused.kind == ControlOutcome::Kind::failed_before) refused.before = ControlOutcome::Kind::not_retryable;
      EXPECT_EQ(round(refused), refused);
    }
  }
}

TEST(RoundTrip, QueuesAndTypes) {
  QueueView queue;
  queue.name = "payments";
  queue.settings = QueueSettings::parse(parse_json(R"({"retention":"30d","rate_limit":"100/sec","paused":true})"));
  queue.from_file = {"retention"};
  queue.known = true;
  queue.count = {"", "payments", 3, 2, kNoon};
  const QueueView read = through(queue, write_queue, read_queue);
  EXPECT_EQ(read.name, queue.name);
  EXPECT_EQ(read.settings.to_json(), queue.settings.to_json());
  EXPECT_EQ(read.from_file, queue.from_file);
  EXPECT_TRUE(read.known);
  EXPECT_EQ(read.count, queue.count);

  TypeView type;
  type.name = "charge";
  type.settings = TypeSettings::parse(parse_json(R"({"identity":"contextual","identity_fields":["/order_id"]})"));
  type.from_file = {"identity", "identity_fields"};
  type.declared = true;
  const TypeView read_back = through(type, write_type, read_type);
  EXPECT_EQ(read_back.name, type.name);
  EXPECT_EQ(read_back.settings.to_json(), type.settings.to_json());
  EXPECT_EQ(read_back.from_file, type.from_file);
  EXPECT_TRUE(read_back.declared);
}

TEST(RoundTrip, IdentitiesWithTheirOwnerOrItsTombstone) {
  FoundIdentity found;
  found.entry.identity = {key_hash("charge", "k"), Strategy::strict, Scope::parse("global")};
  found.entry.name_space = "default";
  found.entry.owner = test_id(5);
  found.entry.input_hash = hash_input("1");
  found.entry.created_at = kNoon;
  found.expires_at = kNoon + 24h;
  found.live = true;
  found.entry.tombstone = Tombstone{Kind::task, "charge", "payments", "k", Status::failed, kNoon, kNoon + 1s};
  EXPECT_EQ(through(found, write_identity, read_identity), found);

  found.entry.tombstone.reset();
  found.live = false;
  found.owner = full_task(Status::completed);
  found.entry.name_space = found.owner->name_space;
  EXPECT_EQ(through(found, write_identity, read_identity), found);
}

TEST(ErrorWords, AreReadBack) {
  for (int code = 0; code <= static_cast<int>(Refusal::Code::task_already_completed); ++code) {
    const auto value = static_cast<Refusal::Code>(code);
    EXPECT_EQ(parse_refusal_code(to_string(value)), value);
  }
  for (int kind = 1; kind <= static_cast<int>(ControlOutcome::Kind::key_conflict); ++kind) {
    const auto value = static_cast<ControlOutcome::Kind>(kind);
    EXPECT_EQ(parse_control_error(to_string(value)), value);
    EXPECT_FALSE(describe(value, test_id(1)).empty());
  }
  EXPECT_EQ(parse_refusal_code("Nonsense"), std::nullopt);
}

TEST(ReadAnswer, WhatIsNoHapaxAnswerIsCorrupt) {
  const auto code_of = [](auto read, const char* text) {
    try {
      read(parse_json(text));
    } catch (const Failure& failure) {
      return failure.code();
    }
    return Failure::Code::stopped;
  };
  for (const char* text : {"{}", "[]", "null", R"({"id":7})", R"({"id":"no uuid"})"}) {
    EXPECT_EQ(code_of(read_execution, text), Failure::Code::corrupt) << text;
    EXPECT_EQ(code_of(read_claim, text), Failure::Code::corrupt) << text;
    EXPECT_EQ(code_of(read_submit_result, text), Failure::Code::corrupt) << text;
    EXPECT_EQ(code_of(read_queue, text), Failure::Code::corrupt) << text;
    EXPECT_EQ(code_of(read_identity, text), Failure::Code::corrupt) << text;
    EXPECT_EQ(code_of([](const Json& json) { return read_all(json, "claims", read_claim); }, text),
              Failure::Code::corrupt)
        << text;
  }
  EXPECT_EQ(code_of(read_queue, R"({"name":"q","settings":{"unheard_of":1}})"), Failure::Code::corrupt);
}

}  // namespace
}  // namespace hapax::wire
