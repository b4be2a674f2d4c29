#include "conformance/store_test.h"

namespace hapax {
namespace {

using Kind = SubmitOutcome::Kind;

class Window : public StoreTest {
 protected:
  // Where the retention is nothing: only its ledger entry is left.
  void owner_in_unretained(const Task& task) {
    const Execution owner = submitted(task);
    complete(token_of(claim_one(owner.queue)));
    ASSERT_EQ(find(owner.id), std::nullopt);
  }
};
HAPAX_FOR_ALL_STORES(Window);

TEST_P(Window, WithoutTtlTheEndIsUnknownWhileActive) { EXPECT_EQ(submit(Task().key("k")).expires_at, std::nullopt); }

TEST_P(Window, WithoutTtlTheKeyLivesAsLongAsRetention) {
  set_retention("work", 1h);
  owner_in(Status::completed, Task().key("k"));
  EXPECT_EQ(submit(Task().key("k")).expires_at, now() + 1h);
  clock_.advance(1h - 1ms);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::duplicate);
  clock_.advance(1ms);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::created);
}

TEST_P(Window, DefaultRetentionOfTasksIsSevenDays) {
  owner_in(Status::completed, Task().key("k"));
  EXPECT_EQ(submit(Task().key("k")).expires_at, now() + 24h * 7);
}

TEST_P(Window, TtlCountsFromCreation) {
  const Execution owner = submitted(Task().key("k").ttl(1h));
  clock_.advance(10min);
  complete(token_of(claim_one()));
  EXPECT_EQ(submit(Task().key("k")).expires_at, owner.created_at + 1h);
}

TEST_P(Window, TtlShorterThanRetentionFreesTheKeyEarly) {
  const Execution owner = owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h - 1ms);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::duplicate);
  clock_.advance(1ms);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::created);
  EXPECT_TRUE(find(owner.id).has_value());
}

TEST_P(Window, TakingOverADeadEntrySupersedesNobody) {
  owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h);
  EXPECT_EQ(submit(Task().key("k").input("2")).superseded, std::nullopt);
}

TEST_P(Window, TakingOverADeadEntryGivesItTheNewTtl) {
  owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h);
  const Execution successor = submitted(Task().key("k").ttl(2h));
  const FoundIdentity found = store().find_identity(key_hash("work", "k")).value();
  EXPECT_EQ(found.entry.owner, successor.id);
  EXPECT_EQ(found.entry.expires_at, now() + 2h);
  EXPECT_EQ(found.entry.created_at, now());
  EXPECT_EQ(found.entry.tombstone, std::nullopt);
}

TEST_P(Window, DryRunOnADeadEntryLeavesItToItsOwner) {
  const Execution owner = owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h);
  EXPECT_EQ(submit(Task().key("k").dry_run()).kind, Kind::created);
  EXPECT_EQ(store().find_identity(key_hash("work", "k"))->entry.owner, owner.id);
}

TEST_P(Window, PendingOwnerHoldsItsIdentityBeyondTheTtl) {
  const Execution owner = submitted(Task().key("k").ttl(1s));
  clock_.advance(24h);
  const SubmitOutcome outcome = submit(Task().key("k"));
  EXPECT_EQ(outcome.kind, Kind::duplicate);
  EXPECT_EQ(outcome.execution.id, owner.id);
  EXPECT_EQ(outcome.expires_at, owner.created_at + 1s);
}

TEST_P(Window, ATtlIsToldFromTheStart) {
  EXPECT_EQ(submit(Task().key("k").ttl(1h)).expires_at, now() + 1h);
  EXPECT_EQ(submit(Task().key("k").ttl(2h)).expires_at, now() + 1h);
}

TEST_P(Window, RunningOwnerHoldsItsIdentityBeyondTheTtl) {
  owner_in(Status::running, Task().key("k").ttl(1s));
  clock_.advance(10s);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::duplicate);
}

TEST_P(Window, OwnerThatClosesAfterItsTtlFreesTheKeyAtOnce) {
  submitted(Task().key("k").ttl(1s));
  clock_.advance(10s);
  complete(token_of(claim_one()));
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::created);
}

TEST_P(Window, TtlLongerThanRetentionLeavesATombstone) {
  set_retention("payments", 1h);
  const Execution owner = owner_in(Status::completed, Task("charge").queue("payments").key("k").input("7").ttl(24h));
  clock_.advance(1h);
  EXPECT_EQ(store().purge(100).executions, 1);
  ASSERT_EQ(find(owner.id), std::nullopt);

  const FoundIdentity found = store().find_identity(key_hash("charge", "k")).value();
  EXPECT_TRUE(found.live);
  EXPECT_EQ(found.owner, std::nullopt);
  EXPECT_EQ(found.expires_at, owner.created_at + 24h);
  const Tombstone expected{hapax::Kind::task, "charge",         "payments",        "k",
                           Status::completed, owner.created_at, *owner.finished_at};
  EXPECT_EQ(found.entry.tombstone, expected);
}

TEST_P(Window, DuplicateOfATombstoneSaysWhatIsStillKnown) {
  set_retention("payments", 1h);
  const Execution owner = owner_in(Status::completed, Task("charge").queue("payments").key("k").input("7").ttl(24h));
  clock_.advance(1h);
  store().purge(100);

  const SubmitOutcome outcome = submit(Task("charge").queue("payments").key("k").input("7"));
  EXPECT_EQ(outcome.kind, Kind::duplicate);
  EXPECT_TRUE(outcome.purged);
  EXPECT_EQ(outcome.expires_at, owner.created_at + 24h);
  EXPECT_EQ(outcome.execution.id, owner.id);
  EXPECT_EQ(outcome.execution.kind, owner.kind);
  EXPECT_EQ(outcome.execution.name_space, owner.name_space);
  EXPECT_EQ(outcome.execution.type, owner.type);
  EXPECT_EQ(outcome.execution.queue, owner.queue);
  EXPECT_EQ(outcome.execution.idempotency_key, owner.idempotency_key);
  EXPECT_EQ(outcome.execution.identity, owner.identity);
  EXPECT_EQ(outcome.execution.input_hash, owner.input_hash);
  EXPECT_EQ(outcome.execution.status, owner.status);
  EXPECT_EQ(outcome.execution.created_at, owner.created_at);
  EXPECT_EQ(outcome.execution.finished_at, owner.finished_at);
  EXPECT_EQ(outcome.execution.result, std::nullopt);
}

TEST_P(Window, TombstoneStillComparesInputs) {
  set_retention("work", 0ms);
  owner_in_unretained(Task().key("k").input("1").ttl(24h));
  EXPECT_EQ(submit(Task().key("k").input("2")).kind, Kind::conflict);
}

TEST_P(Window, TombstoneHasNoOwnerAlthoughItsIdCameAgainWithoutTheKey) {
  set_retention("work", 0ms);
  const Submission submission = Task().key("k").ttl(1h);
  submit(submission);
  complete(token_of(claim_one()));
  Submission again = Task();
  again.execution.id = submission.execution.id;
  submit(again);
  const FoundIdentity found = store().find_identity(key_hash("work", "k")).value();
  EXPECT_TRUE(found.entry.tombstone);
  EXPECT_FALSE(found.owner);
  const SubmitOutcome duplicate = submit(Task().key("k"));
  EXPECT_TRUE(duplicate.purged);
  EXPECT_EQ(duplicate.execution.status, Status::completed);
}

TEST_P(Window, TombstoneDiesWithItsTtl) {
  set_retention("work", 0ms);
  owner_in_unretained(Task().key("k").ttl(1h));
  clock_.advance(1h);
  EXPECT_FALSE(store().find_identity(key_hash("work", "k"))->live);
  const SubmitOutcome outcome = submit(Task().key("k").input("2"));
  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.superseded, std::nullopt);
}

TEST_P(Window, PurgeDeletesDeadTombstones) {
  set_retention("work", 0ms);
  owner_in_unretained(Task().key("k").ttl(1h));
  clock_.advance(1h - 1ms);
  EXPECT_EQ(store().purge(100).identities, 0);
  clock_.advance(1ms);
  EXPECT_EQ(store().purge(100).identities, 1);
  EXPECT_EQ(store().find_identity(key_hash("work", "k")), std::nullopt);
}

TEST_P(Window, PurgeWithoutTtlDeletesTheEntryWithTheExecution) {
  owner_in(Status::completed, Task().key("k"));
  clock_.advance(24h * 7);
  store().purge(100);
  EXPECT_EQ(store().find_identity(key_hash("work", "k")), std::nullopt);
}

TEST_P(Window, PurgeOfASupersededExecutionLeavesTheEntryToItsSuccessor) {
  set_retention("work", 1h);
  owner_in(Status::failed, Task().key("k"));
  const Execution successor = submitted(Task().key("k"));
  clock_.advance(1h);
  EXPECT_EQ(store().purge(100).executions, 1);
  EXPECT_EQ(store().find_identity(key_hash("work", "k"))->entry.owner, successor.id);
}

TEST_P(Window, RetentionOfNothingDeletesOnCompletion) {
  set_retention("work", 0ms);
  const Execution task = submitted(Task().key("k"));
  const FinishOutcome outcome = complete(token_of(claim_one()), "42");
  EXPECT_EQ(outcome.status, Status::completed);
  ASSERT_TRUE(outcome.purged.has_value());
  EXPECT_EQ(outcome.purged->id, task.id);
  EXPECT_EQ(outcome.purged->result, "42");
  EXPECT_EQ(find(task.id), std::nullopt);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::created);
}

TEST_P(Window, RetentionOfNothingKeepsATaskThatIsTriedAgain) {
  set_retention("work", 0ms);
  const Execution task = submitted(Task());
  EXPECT_EQ(fail(token_of(claim_one())).purged, std::nullopt);
  EXPECT_EQ(status_of(task.id), Status::pending);
}

TEST_P(Window, RetentionOfNothingDeletesOnCancel) {
  set_retention("work", 0ms);
  const Execution task = submitted(Task());
  const ControlOutcome outcome = cancel(task.id);
  EXPECT_EQ(outcome.status, Status::cancelled);
  EXPECT_EQ(outcome.effects.closed.size(), 1U);
  EXPECT_EQ(find(task.id), std::nullopt);
}

TEST_P(Window, RetentionOfNothingDeletesOnReplace) {
  set_retention("work", 0ms);
  const Execution owner = submitted(Task().key("k").ttl(1h));
  const Execution successor = submitted(Task().key("k").reuse(Reuse::replace));
  EXPECT_EQ(find(owner.id), std::nullopt);
  const FoundIdentity found = store().find_identity(key_hash("work", "k")).value();
  EXPECT_EQ(found.entry.owner, successor.id);
  EXPECT_EQ(found.entry.tombstone, std::nullopt);
}

TEST_P(Window, RetentionOfNothingDeletesOnSweep) {
  set_retention("work", 0ms);
  const Execution task = submitted(Task().key("k").deadline(1s).ttl(1h));
  clock_.advance(1s);
  EXPECT_THAT(ids_of(store().sweep(100).effects.closed), testing::ElementsAre(task.id));
  EXPECT_EQ(find(task.id), std::nullopt);
  EXPECT_EQ(store().find_identity(key_hash("work", "k"))->entry.tombstone->status, Status::timed_out);
}

TEST_P(Window, ShorterRetentionAppliesToWhatIsClosedAlready) {
  owner_in(Status::completed, Task().key("k"));
  clock_.advance(1h);
  set_retention("work", 1h);
  EXPECT_EQ(submit(Task().key("k")).kind, Kind::created);
}

}  // namespace
}  // namespace hapax
