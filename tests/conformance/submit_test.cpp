#include "conformance/store_test.h"

namespace hapax {
namespace {

using Kind = SubmitOutcome::Kind;

class Submit : public StoreTest {};
HAPAX_FOR_ALL_STORES(Submit);

TEST_P(Submit, KeepsEverythingTheSubmissionSays) {
  const RetryPolicy retry{500ms, 1.5, 9s};
  const Submission submission = Task("charge")
                                    .queue("payments")
                                    .input(R"({"order":1})")
                                    .key("order-1")
                                    .priority(7)
                                    .concurrency_key("customer-1")
                                    .max_attempts(5)
                                    .retry(retry)
                                    .timeout(3s)
                                    .parent(test_id(1'000'000));
  Execution expected = submission.execution;
  expected.created_at = expected.run_at = now();
  expected.attempt_limit = 5;

  const SubmitOutcome outcome = submit(submission);

  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.execution, expected);
  EXPECT_EQ(find(expected.id), expected);
}

TEST_P(Submit, RunAtIsNowUnlessGiven) { EXPECT_EQ(submitted(Task()).run_at, now()); }

TEST_P(Submit, DelayCountsFromNow) { EXPECT_EQ(submitted(Task().delay(90s)).run_at, now() + 90s); }

TEST_P(Submit, GivenRunAtIsKeptEvenInThePast) {
  EXPECT_EQ(submitted(Task().run_at(now() - 1h).delay(90s)).run_at, now() - 1h);
}

TEST_P(Submit, DeadlineCountsFromCreation) { EXPECT_EQ(submitted(Task().deadline(1h)).deadline_at, now() + 1h); }

TEST_P(Submit, GivenDeadlineInstantWinsOverItsDuration) {
  EXPECT_EQ(submitted(Task().deadline(1h).deadline_at(now() + 2h)).deadline_at, now() + 2h);
}

TEST_P(Submit, WithoutIdentityEveryOneIsNew) {
  submitted(Task());
  submitted(Task());
  EXPECT_EQ(store().list({.name_space = "default"}).size(), 2u);
}

TEST_P(Submit, WithoutIdentityNothingExpires) { EXPECT_EQ(submit(Task()).expires_at, std::nullopt); }

TEST_P(Submit, SameKeyTwiceGivesTheFirstExecution) {
  const Execution first = submitted(Task().key("k"));
  clock_.advance(1s);
  const SubmitOutcome second = submit(Task().key("k"));
  EXPECT_EQ(second.kind, Kind::duplicate);
  EXPECT_EQ(second.execution, first);
  EXPECT_FALSE(second.purged);
  EXPECT_EQ(second.superseded, std::nullopt);
}

TEST_P(Submit, DuplicateOfACompletedOneCarriesItsResult) {
  owner_in(Status::completed, Task().key("k"));
  EXPECT_EQ(submit(Task().key("k")).execution.result, "1");
}

TEST_P(Submit, SameKeyInAnotherNamespaceIsAnother) {
  submitted(Task().key("k"));
  submitted(Task().key("k").name_space("tenant"));
}

TEST_P(Submit, SameKeyWithOtherInputIsAConflictThatChangesNothing) {
  const Execution owner = submitted(Task().key("k").input("1"));
  const auto before = store().find_identity(owner.identity->hash);
  const Submission other = Task().key("k").input("2");
  const SubmitOutcome outcome = submit(other);
  EXPECT_EQ(outcome.kind, Kind::conflict);
  EXPECT_EQ(outcome.execution, owner);
  EXPECT_EQ(find(other.execution.id), std::nullopt);
  EXPECT_EQ(store().find_identity(owner.identity->hash), before);
}

// Scopes that several types share, each with the key of one of them.
std::vector<Task> in_wide_scopes(const std::string& type) {
  return {Task(type).key("k").scope({Scope::Tag::queue, ""}), Task(type).key("k").scope({Scope::Tag::global, ""}),
          Task(type).key("k").scope({Scope::Tag::custom, "orders"})};
}

TEST_P(Submit, SameKeyWithAnotherTypeIsAConflictThatChangesNothing) {
  const std::vector<Task> charges = in_wide_scopes("charge"), refunds = in_wide_scopes("refund");
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Execution owner = submitted(charges[i]);
    SCOPED_TRACE(owner.identity->scope.to_string());
    const auto before = store().find_identity(owner.identity->hash);
    const Submission other = refunds[i];
    ASSERT_EQ(other.execution.identity->hash, owner.identity->hash);
    const SubmitOutcome outcome = submit(other);
    EXPECT_EQ(outcome.kind, Kind::conflict);
    EXPECT_EQ(outcome.execution, owner);
    EXPECT_EQ(find(other.execution.id), std::nullopt);
    EXPECT_EQ(store().find_identity(owner.identity->hash), before);
  }
}

TEST_P(Submit, AnotherTypeConflictsWhateverTheStrategy) {
  const Scope global{Scope::Tag::global, ""};
  for (const Strategy strategy : {Strategy::strict, Strategy::contextual}) {
    submitted(Task("charge").identity(strategy, "1").scope(global));
    EXPECT_EQ(submit(Task("charge").identity(strategy, "1").scope(global)).kind, Kind::duplicate);
    EXPECT_EQ(submit(Task("refund").identity(strategy, "1").scope(global)).kind, Kind::conflict);
  }
}

TEST_P(Submit, AnotherTypeConflictsWithACompletedOwnerAndItsTombstone) {
  const Scope global{Scope::Tag::global, ""};
  const Execution owner = owner_in(Status::completed, Task("charge").key("k").scope(global).ttl(24h));
  EXPECT_EQ(submit(Task("charge").key("k").scope(global)).kind, Kind::duplicate);
  EXPECT_EQ(submit(Task("refund").key("k").scope(global)).kind, Kind::conflict);
  EXPECT_EQ(submit(Task("refund").key("k").scope(global)).kind, Kind::conflict);  // asked of a cache, if there is one
  set_retention("work", 1s);
  clock_.advance(1s);
  store().purge(100);
  ASSERT_EQ(find(owner.id), std::nullopt);
  EXPECT_EQ(submit(Task("charge").key("k").scope(global)).kind, Kind::duplicate);
  const SubmitOutcome outcome = submit(Task("refund").key("k").scope(global));
  EXPECT_EQ(outcome.kind, Kind::conflict);
  EXPECT_EQ(outcome.execution.type, "charge");
}

TEST_P(Submit, AnotherTypeConflictsInABatchAndInADryRun) {
  const Scope global{Scope::Tag::global, ""};
  const std::vector<Submission> batch{Task("charge").key("k").scope(global), Task("refund").key("k").scope(global)};
  const auto outcomes = store().submit(batch);
  EXPECT_EQ(outcomes.at(0).kind, Kind::created);
  EXPECT_EQ(outcomes.at(1).kind, Kind::conflict);
  EXPECT_EQ(submit(Task("refund").key("k").scope(global).dry_run()).kind, Kind::conflict);
}

TEST_P(Submit, AnotherTypeIsNoConflictWhereTheOwnerMakesWay) {
  const Scope global{Scope::Tag::global, ""};
  const Execution owner = owner_in(Status::failed, Task("charge").key("k").scope(global));
  const SubmitOutcome outcome = submit(Task("refund").key("k").scope(global));
  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.superseded, owner.id);
}

// The clocks of two servers differ, and a statement may have waited for a lock since it looked at the time.
TEST_P(Submit, ASuccessorIsNeverOlderThanTheOneItSupersedes) {
  for (const Reuse reuse : {Reuse::allow_failed, Reuse::allow_closed, Reuse::replace}) {
    const std::string key(to_string(reuse));
    SCOPED_TRACE(key);
    const Status status = reuse == Reuse::replace ? Status::pending : Status::failed;
    const Execution owner = owner_in(status, Task().queue(key).key(key));
    clock_.advance(-5s);
    const SubmitOutcome outcome = submit(Task().queue(key).key(key).reuse(reuse).ttl(1h));
    ASSERT_EQ(outcome.kind, Kind::created);
    EXPECT_EQ(outcome.superseded, owner.id);
    EXPECT_EQ(outcome.execution.created_at, owner.created_at);
    EXPECT_EQ(outcome.execution.run_at, now());
    EXPECT_EQ(outcome.expires_at, owner.created_at + 1h);
    EXPECT_EQ(find(outcome.execution.id)->created_at, owner.created_at);
    EXPECT_EQ(store().find_identity(owner.identity->hash)->entry.created_at, owner.created_at);
    clock_.advance(5s);
  }
}

TEST_P(Submit, OtherInputIsNoConflictWhereTheOwnerMakesWay) {
  const Execution owner = owner_in(Status::failed, Task().key("k").input("1"));
  const SubmitOutcome outcome = submit(Task().key("k").input("2"));
  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.superseded, owner.id);
}

TEST_P(Submit, OtherInputIsNoConflictUnderReplace) {
  submitted(Task().key("k").input("1"));
  EXPECT_EQ(submit(Task().key("k").input("2").reuse(Reuse::replace)).kind, Kind::created);
}

TEST_P(Submit, OtherInputConflictsUnderRejectEvenWithAFailedOwner) {
  owner_in(Status::failed, Task().key("k").input("1"));
  EXPECT_EQ(submit(Task().key("k").input("2").reuse(Reuse::reject)).kind, Kind::conflict);
}

TEST_P(Submit, ContextualIdentityNeverConflicts) {
  submitted(Task().identity(Strategy::contextual, "order-1").input("1"));
  EXPECT_EQ(submit(Task().identity(Strategy::contextual, "order-1").input("2")).kind, Kind::duplicate);
}

TEST_P(Submit, StrictIdentityIsADuplicate) {
  submitted(Task().identity(Strategy::strict, "1").input("1"));
  EXPECT_EQ(submit(Task().identity(Strategy::strict, "1").input("1")).kind, Kind::duplicate);
}

TEST_P(Submit, SameSubmissionAgainIsCreatedAgainWithTheStoredExecution) {
  const Submission submission = Task().key("k");
  const Execution first = submitted(submission);
  clock_.advance(1h);
  const SubmitOutcome again = submit(submission);
  EXPECT_EQ(again.kind, Kind::created);
  EXPECT_EQ(again.execution, first);
}

TEST_P(Submit, SameSubmissionAgainAfterItRanShowsHowItWent) {
  const Submission submission = Task();
  submit(submission);
  complete(token_of(claim_one()), "42");
  const SubmitOutcome again = submit(submission);
  EXPECT_EQ(again.kind, Kind::created);
  EXPECT_EQ(again.execution.result, "42");
}

TEST_P(Submit, SameSubmissionAgainUnderReplaceDoesNotReplaceItself) {
  const Submission submission = Task().key("k").reuse(Reuse::replace);
  submit(submission);
  EXPECT_EQ(submit(submission).execution.status, Status::pending);
}

TEST_P(Submit, SameSubmissionAgainAfterItWasPurgedIsStillCreated) {
  set_retention("work", 0ms);
  const Submission submission = Task().key("k").ttl(1h);
  submit(submission);
  complete(token_of(claim_one()));
  const SubmitOutcome again = submit(submission);
  EXPECT_EQ(again.kind, Kind::created);
  EXPECT_TRUE(again.purged);
  EXPECT_EQ(again.execution.id, submission.execution.id);
}

std::vector<Execution> list_default(Store& store) {
  ListFilter filter;
  filter.name_space = "default";
  return store.list(filter);
}

// Drawn by a clock that is ahead, so that no store can tell from the id that it is new.
Submission drawn_ahead(Task task, Time now, std::uint64_t number) {
  ExecutionId id = test_id(number);
  const std::int64_t ms = to_ms(now + 1h);
  for (int i = 0; i < 6; ++i) id.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
  return task.id(id);
}

TEST_P(Submit, SameSubmissionAgainIsToldAgainWhomItSuperseded) {
  const Execution first = submitted(Task().key("k"));
  const Submission second = drawn_ahead(Task().key("k").reuse(Reuse::replace), now(), 1001);
  EXPECT_EQ(submit(second).superseded, first.id);
  EXPECT_EQ(submit(second).superseded, first.id);
  submit(Task().key("k").reuse(Reuse::replace));  // it is superseded itself
  for (const Reuse reuse : {Reuse::allow_failed, Reuse::reject, Reuse::allow_closed, Reuse::replace}) {
    Submission again = second;
    again.reuse = reuse;
    const SubmitOutcome outcome = submit(again);
    EXPECT_EQ(outcome.kind, Kind::created);
    EXPECT_EQ(outcome.execution.id, second.execution.id);
    EXPECT_EQ(outcome.superseded, first.id);
  }
  EXPECT_EQ(list_default(store()).size(), 3U);
}

TEST_P(Submit, SameSubmissionAgainWithoutAKeyIsOne) {
  const Submission submission = Task();
  submit(submission);
  fail(token_of(claim_one()), false);
  EXPECT_EQ(submit(submission).kind, Kind::created);
  EXPECT_EQ(list_default(store()).size(), 1U);
}

TEST_P(Submit, SameIdWithAnotherTypeOrInputIsAConflictWhateverItsKey) {
  const Submission submission = Task().key("k");
  const Execution first = submitted(submission);
  for (Submission other : {Submission(Task().key("k").input("2")), Submission(Task().input("2")),
                           Submission(Task("other").key("l")), Submission(Task("other"))}) {
    other.execution.id = submission.execution.id;
    const SubmitOutcome outcome = submit(other);
    EXPECT_EQ(outcome.kind, Kind::conflict);
    EXPECT_EQ(outcome.execution.id, first.id);
  }
  EXPECT_EQ(list_default(store()).size(), 1U);
  EXPECT_EQ(store().find_identity(key_hash("work", "l")), std::nullopt);
}

TEST_P(Submit, SameIdWithoutItsKeyGetsTheFirstAnswerWithItsExpiry) {
  const Submission submission = Task().key("k").ttl(24h);
  const SubmitOutcome first = submit(submission);
  ASSERT_TRUE(first.expires_at);
  Submission again = Task();
  again.execution.id = submission.execution.id;
  EXPECT_EQ(submit(again), first);
  again = Task().key("another");
  again.execution.id = submission.execution.id;
  EXPECT_EQ(submit(again), first);
}

TEST_P(Submit, SameIdInAnotherNamespaceIsRefusedAndTellsNothing) {
  const Submission submission = Task().key("k");
  submit(submission);
  Submission foreign = Task().name_space("other").key("k");
  foreign.execution.id = submission.execution.id;
  const SubmitOutcome outcome = submit(foreign);
  EXPECT_EQ(outcome.kind, Kind::id_taken);
  EXPECT_EQ(outcome.execution, Execution());
  EXPECT_EQ(submit(submission).kind, Kind::created);
}

TEST_P(Submit, ReplaceCancelsAPendingOwnerAtOnce) {
  const Execution owner = submitted(Task().key("k"));
  const SubmitOutcome outcome = submit(Task().key("k").reuse(Reuse::replace));
  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.superseded, owner.id);
  EXPECT_EQ(status_of(owner.id), Status::cancelled);
}

TEST_P(Submit, ReplaceGivesARunningOwnerTheGraceOfItsQueue) {
  set_policy("work", {.cancel_grace = 5s});
  const Execution owner = owner_in(Status::running, Task().key("k"));
  submitted(Task().key("k").reuse(Reuse::replace));
  EXPECT_EQ(status_of(owner.id), Status::running);
  EXPECT_EQ(find(owner.id)->cancel_by, now() + 5s);
}

TEST_P(Submit, ReplacedOwnerThatStillFinishesDoesNotTakeTheIdentityBack) {
  submitted(Task().key("k"));
  const Execution owner = claim_one();
  const Execution successor = submitted(Task().key("k").reuse(Reuse::replace));
  complete(token_of(owner));
  EXPECT_EQ(submit(Task().key("k")).execution.id, successor.id);
}

TEST_P(Submit, BatchAnswersInOrder) {
  const std::vector<Submission> batch{Task(), Task().key("k"), Task()};
  const auto outcomes = store().submit(batch);
  ASSERT_EQ(outcomes.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(outcomes[i].execution.id, batch[i].execution.id);
}

TEST_P(Submit, EmptyBatchHasNoOutcomes) { EXPECT_TRUE(store().submit({}).empty()); }

TEST_P(Submit, SecondOfTwoEqualIdentitiesInABatchMeetsTheFirst) {
  const std::vector<Submission> batch{Task().key("k"), Task().key("k"), Task().key("k").input("2")};
  const auto outcomes = store().submit(batch);
  EXPECT_EQ(outcomes.at(0).kind, Kind::created);
  EXPECT_EQ(outcomes.at(1).kind, Kind::duplicate);
  EXPECT_EQ(outcomes.at(1).execution.id, batch[0].execution.id);
  EXPECT_EQ(outcomes.at(2).kind, Kind::conflict);
}

TEST_P(Submit, ReplaceWithinABatchCancelsTheEarlierItem) {
  const std::vector<Submission> batch{Task().key("k"), Task().key("k").reuse(Reuse::replace)};
  const auto outcomes = store().submit(batch);
  EXPECT_EQ(outcomes.at(0).execution.status, Status::pending);
  EXPECT_EQ(outcomes.at(1).superseded, batch[0].execution.id);
  EXPECT_EQ(status_of(batch[0].execution.id), Status::cancelled);
}

TEST_P(Submit, RepeatedBatchGivesTheSameAnswer) {
  const std::vector<Submission> batch{Task().key("a"), Task(), Task().key("a"), Task().key("b")};
  const auto first = store().submit(batch);
  EXPECT_EQ(store().submit(batch), first);
}

TEST_P(Submit, BatchOfAThousandIsTaken) {
  std::vector<Submission> batch;
  for (int i = 0; i < 1000; ++i) batch.push_back(Task().key("k" + std::to_string(i % 500)));
  const auto outcomes = store().submit(batch);
  const auto created = std::count_if(outcomes.begin(), outcomes.end(),
                                     [](const SubmitOutcome& outcome) { return outcome.kind == Kind::created; });
  EXPECT_EQ(created, 500);
}

TEST_P(Submit, DryRunShowsTheExecutionThatWouldBeAndCreatesNone) {
  const SubmitOutcome outcome = submit(Task().key("k").delay(5s).dry_run());
  EXPECT_EQ(outcome.kind, Kind::created);
  EXPECT_EQ(outcome.execution.created_at, now());
  EXPECT_EQ(outcome.execution.run_at, now() + 5s);
  EXPECT_EQ(find(outcome.execution.id), std::nullopt);
  EXPECT_EQ(store().find_identity(key_hash("work", "k")), std::nullopt);
}

TEST_P(Submit, DryRunMeetsTheOwner) {
  const Execution owner = submitted(Task().key("k"));
  EXPECT_EQ(submit(Task().key("k").dry_run()).execution, owner);
  EXPECT_EQ(submit(Task().key("k").input("2").dry_run()).kind, Kind::conflict);
}

TEST_P(Submit, DryRunOfReplaceCancelsNobody) {
  const Execution owner = submitted(Task().key("k"));
  EXPECT_EQ(submit(Task().key("k").reuse(Reuse::replace).dry_run()).superseded, owner.id);
  EXPECT_EQ(find(owner.id), owner);
  EXPECT_EQ(submit(Task().key("k")).execution.id, owner.id);
}

TEST_P(Submit, DryRunSeesTheBatchSoFar) {
  const std::vector<Submission> batch{Task().key("k").dry_run(), Task().key("k"), Task().key("k").dry_run()};
  const auto outcomes = store().submit(batch);
  EXPECT_EQ(outcomes.at(0).kind, Kind::created);
  EXPECT_EQ(outcomes.at(1).kind, Kind::created);
  EXPECT_EQ(outcomes.at(2).kind, Kind::duplicate);
  EXPECT_EQ(outcomes.at(2).execution.id, batch[1].execution.id);
}

}  // namespace
}  // namespace hapax
