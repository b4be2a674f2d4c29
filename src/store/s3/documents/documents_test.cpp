#include "store/s3/documents/documents.h"

#include <gtest/gtest.h>

#include "store/s3/documents/envelope.h"
#include "support/filled.h"
#include "support/task.h"

namespace hapax::s3 {
namespace {

using namespace std::chrono_literals;

const Time kNow = from_ms(1'767'225'600'123);

// Every field is something else than its default.
Execution full_execution() {
  auto execution = filled<Execution>();
  execution.idempotency_key = std::string("nul\0inside", 10);
  return execution;
}

Event full_event() {
  Event event;
  event.no = 3;
  event.at = kNow;
  event.kind = Event::Kind::closed;
  event.step = 2;
  event.name = "go";
  event.key = "k";
  event.execution = test_id(6);
  event.until = kNow + 1s;
  event.status = Status::timed_out;
  event.value = "[1]";
  event.error = AttemptError{"E", "m"};
  return event;
}

TEST(Documents, TaskComesBackWithEveryMember) {
  TaskDocument document;
  document.execution = full_execution();
  document.history = {full_event(), Event()};
  document.waits = {{test_id(1), 2, "go", kNow, test_id(7)}};
  document.signals = {full_event()};
  document.waiters = {{test_id(8), 3}};
  document.hints = {"ready/x", "due/y"};
  document.mark = "abc";
  EXPECT_EQ(read_task(write(document)), document);
  EXPECT_EQ(read_task(write(TaskDocument())), TaskDocument());
}

TEST(Documents, EveryKindOfEventAndStatusComesBack) {
  TaskDocument document;
  for (int kind = 0; kind <= static_cast<int>(Event::Kind::continued); ++kind) {
    Event event;
    event.kind = static_cast<Event::Kind>(kind);
    event.status = static_cast<Status>(kind % 7);
    document.history.push_back(event);
  }
  EXPECT_EQ(read_task(write(document)), document);
}

TEST(Documents, RecordComesBackWithEveryMember) {
  Record record;
  record.entry.identity = *full_execution().identity;
  record.entry.name_space = "tenant";
  record.entry.owner = test_id(1);
  record.entry.input_hash = hash_input("1");
  record.entry.created_at = kNow;
  record.entry.expires_at = kNow + 1h;
  record.entry.tombstone = Tombstone{hapax::Kind::workflow, "t", "q", "k", Status::failed, kNow, kNow + 1s};
  record.key = "k";
  record.task_type = "t";
  record.task = write(TaskDocument());
  EXPECT_EQ(read_record(write(record)), record);
  record.ready = true;
  record.task.reset();
  EXPECT_EQ(read_record(write(record)), record);
}

TEST(Documents, RecordHasTheMembersOfTheSpecification) {
  Record record;
  record.entry.identity = *full_execution().identity;
  record.entry.owner = test_id(1);
  record.entry.expires_at = kNow;
  record.key = "charge-order-456";
  record.task_type = "charge";
  const Json json = parse_json(write(record));
  for (const char* member :
       {"key", "key_hash", "task_id", "task_key", "created_at", "expires_at", "task_type", "input_hash", "status"}) {
    EXPECT_NE(json.find(member), nullptr) << member;
  }
  EXPECT_EQ(json.find("status")->text, "creating");
}

TEST(Documents, GravesRequestsAndQueuesComeBack) {
  Grave grave{kNow, kNow + 1s, true,
              ClosingReport{{test_id(1), 2, test_secret(3)}, sha256("x"), Status::failed, "n", "q", true}};
  const auto read = read_grave(write(grave));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at, grave.at);
  EXPECT_EQ(read->keep_until, grave.keep_until);
  EXPECT_TRUE(read->final);
  EXPECT_EQ(read->report, grave.report);
  EXPECT_FALSE(read_grave(write(TaskDocument())));

  RequestDocument request;
  request.past = {ControlRequest::Action::fork, test_id(1), "w", hash_input("p"), {}};
  request.past.outcome.kind = ControlOutcome::Kind::identity_taken;
  request.past.outcome.changed = true;
  request.past.outcome.other = test_id(2);
  request.past.outcome.execution = test_id(3);
  request.past.outcome.steps = 4;
  request.expires_at = kNow;
  const RequestDocument back = read_request(write(request));
  EXPECT_EQ(back.past.outcome, request.past.outcome);
  EXPECT_EQ(back.past.action, request.past.action);
  EXPECT_EQ(back.past.workflow_id, request.past.workflow_id);
  EXPECT_EQ(back.past.parameters, request.past.parameters);
  EXPECT_EQ(back.expires_at, kNow);

  const RateState rate{5, {2, std::chrono::hours(1), 3}};
  EXPECT_EQ(read_queue(write(QueueDocument{rate, 6})).rate, rate);
}

TEST(Documents, WhatNobodyWroteIsCorrupt) {
  EXPECT_THROW(read_task("{"), Failure);
  EXPECT_THROW(read_task(R"({"id":7})"), Failure);
  EXPECT_THROW(read_task(R"({"status":"asleep"})"), Failure);
  EXPECT_THROW(unseal("x", "{}"), Failure);
}

TEST(Envelope, ContentAndLockComeBack) {
  const std::string content = write(TaskDocument());
  EXPECT_EQ(unseal("x", seal(content)).content, content);
  EXPECT_FALSE(unseal("x", seal(content)).lock);
  const Lock lock{random_token(), kNow};
  const Envelope locked = unseal("x", seal(content, lock));
  EXPECT_EQ(locked.content, content);
  EXPECT_EQ(locked.lock->transaction, lock.transaction);
  EXPECT_EQ(locked.lock->until, kNow);
  EXPECT_EQ(unseal("x", seal("", lock)).content, "");
  EXPECT_EQ(unseal("x", seal("")).content, "");
  EXPECT_NO_THROW(parse_json(seal(content, lock)));
}

TEST(Envelope, NoTwoBodiesAreTheSame) { EXPECT_NE(seal("{}"), seal("{}")); }

}  // namespace
}  // namespace hapax::s3
