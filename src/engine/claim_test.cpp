// Who waits, who is lent to a verb, and how often the store is asked.
#include "engine/claim.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kLong = 20s;

class CountingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::vector<ClaimOutcome> claim(std::span<const ClaimRequest> requests) override {
    looks += static_cast<int>(requests.size());
    if (left_all.exchange(false)) {
      std::vector<ClaimOutcome> outcomes(requests.size());
      for (ClaimOutcome& outcome : outcomes) outcome.more = true;
      return outcomes;
    }
    return store_->claim(requests);
  }

  std::atomic<int> looks = 0;
  std::atomic<bool> left_all = false;  // the next look finds only what cannot be handed out, and no room for the rest
};

class ClaimDeskTest : public testing::Test {
 protected:
  ~ClaimDeskTest() override {
    desk_.stop();
    timer_.stop();
  }

  struct Call {
    std::future<std::vector<ExecutionId>> claimed;
    std::shared_ptr<Waiting> waiting;
  };
  Call begin_of(std::vector<std::string> types, std::int32_t limit = 1) {
    return begin({"work"}, limit, false, std::move(types));
  }
  Call begin(std::vector<std::string> queues = {"work"}, std::int32_t limit = 1, bool workflows = false,
             std::vector<std::string> types = {}, std::string claim_id = {}) {
    auto promise = std::make_shared<std::promise<std::vector<ExecutionId>>>();
    Call call{promise->get_future(), nullptr};
    call.waiting = desk_.claim({.name_space = "default",
                                .queues = std::move(queues),
                                .tasks = !workflows,
                                .workflows = workflows,
                                .types = std::move(types),
                                .limit = limit,
                                .worker = "w",
                                .lease = kLong,
                                .wait = kLong,
                                .claim_id = std::move(claim_id)},
                               [promise](Answer<std::vector<Claimed>> answer) {
                                 try {
                                   std::vector<ExecutionId> ids;
                                   for (const Claimed& each : std::move(answer).get()) ids.push_back(each.execution.id);
                                   promise->set_value(ids);
                                 } catch (const Failure&) {
                                   promise->set_exception(std::current_exception());
                                 }
                               });
    return call;
  }
  Call say(std::string claim_id) { return begin({"work"}, 1, false, {}, std::move(claim_id)); }
  // Until a loan finds so many asleep.
  void await_asleep(std::size_t count, const std::string& type = "work") {
    const std::vector<Submission> many(100, Task(type));
    for (;;) {
      ClaimDesk::Loan loan = desk_.lend(many);
      const std::size_t found = loan.waiters().requests.size();
      loan.deliver();
      if (found == count) return;
      std::this_thread::yield();
    }
  }
  // As the engine does it.
  std::vector<SubmitOutcome> submit(const std::vector<Submission>& submissions) {
    ClaimDesk::Loan loan = desk_.lend(submissions);
    auto outcomes = store_->submit(submissions, loan.waiters());
    const auto handed = loan.deliver();
    for (const SubmitOutcome& outcome : outcomes) {
      const Execution& created = outcome.execution;
      if (!handed.contains(created.id))
        desk_.announce({created.name_space, created.queue, created.kind, created.type}, 1);
    }
    return outcomes;
  }

  SystemClock clock_;
  std::shared_ptr<CountingStore> store_ = std::make_shared<CountingStore>(open_memory_store(clock_));
  Timer timer_;
  std::vector<ExecutionId> given_back_;
  ClaimDesk desk_{*store_,
                  timer_,
                  {.handed_out = [](const std::vector<Claimed>&) {},
                   .give_back =
                       [this](const std::vector<Claimed>& claimed) {
                         for (const Claimed& each : claimed) given_back_.push_back(each.execution.id);
                       }}};
};

TEST_F(ClaimDeskTest, WhoIsAsleepIsHandedWhatIsSubmittedWithoutAnotherLook) {
  Call call = begin();
  await_asleep(1);
  const auto id = submit({Task()}).at(0).execution.id;
  EXPECT_THAT(call.claimed.get(), ElementsAre(id));
  EXPECT_EQ(store_->looks, 1);
}

TEST_F(ClaimDeskTest, WhoFoundNothingThoughThereIsMoreLooksAgainAtOnce) {
  const Submission task = Task();
  const auto id = store_->submit({&task, 1}).at(0).execution.id;
  store_->left_all = true;
  Call call = begin();
  ASSERT_EQ(call.claimed.wait_for(10s), std::future_status::ready) << "it sleeps";
  EXPECT_THAT(call.claimed.get(), ElementsAre(id));
  EXPECT_EQ(store_->looks, 2);
}

TEST_F(ClaimDeskTest, WhoComesBackWhenNothingWasLeftSleepsWithoutALook) {
  Call first = begin();
  await_asleep(1);
  first.waiting->cancel();
  for (int i = 0; i < 5; ++i) {
    Call call = begin();
    await_asleep(1);
    submit({Task()});
    EXPECT_EQ(call.claimed.get().size(), 1U);
  }
  EXPECT_EQ(store_->looks, 1);
}

TEST_F(ClaimDeskTest, WhatIsAnnouncedIsLookedFor) {
  Call first = begin();
  await_asleep(1);
  submit({Task(), Task()});
  EXPECT_EQ(first.claimed.get().size(), 1U);
  EXPECT_EQ(begin().claimed.get().size(), 1U) << "the second one was left over";
}

TEST_F(ClaimDeskTest, WhatNobodySaidIsFoundWithinASecond) {
  Call first = begin();
  await_asleep(1);
  const Submission unheard = Task();
  store_->submit({&unheard, 1});
  first.waiting->cancel();
  const auto start = std::chrono::steady_clock::now();
  while (begin().claimed.wait_for(50ms) != std::future_status::ready) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, kLong);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(ClaimDeskTest, WhatBecomesDueIsFoundByWhoeverCameWithoutALook) {
  begin().waiting->cancel();
  submit({Task().delay(300ms)});
  Call first = begin();
  await_asleep(1);
  Call second = begin();
  EXPECT_EQ(first.claimed.get().size(), 1U);
  submit({Task()});
  EXPECT_EQ(second.claimed.get().size(), 1U);
}

TEST_F(ClaimDeskTest, LendsNoMoreThanMayBeNeeded) {
  std::vector<Call> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(begin({"work"}, 2));
  await_asleep(5);
  const std::vector<Submission> three{Task(), Task(), Task()};
  ClaimDesk::Loan loan = desk_.lend(three);
  EXPECT_EQ(loan.waiters().requests.size(), 2U);
  const std::vector<Submission> elsewhere{Task().queue("other")};
  EXPECT_THAT(desk_.lend(elsewhere).waiters().requests, IsEmpty());
  loan.deliver();
  for (Call& call : calls) call.waiting->cancel();
}

TEST_F(ClaimDeskTest, OnlyWhoTakesTheTypeIsHandedIt) {
  Call of_b = begin_of({"b"});
  await_asleep(1, "b");
  Call of_a = begin_of({"a", "c"});
  await_asleep(1, "a");
  const int before = store_->looks;
  const auto id = submit({Task("a")}).at(0).execution.id;
  EXPECT_THAT(of_a.claimed.get(), ElementsAre(id));
  EXPECT_EQ(store_->looks, before) << "one was woken in vain";
  const auto other = submit({Task("b")}).at(0).execution.id;
  EXPECT_THAT(of_b.claimed.get(), ElementsAre(other));
}

TEST_F(ClaimDeskTest, WhoTakesAnyTypeAndWhoTakesOneAreServedInTheOrderOfTheirComing) {
  Call of_any = begin();
  await_asleep(1);
  Call of_a = begin_of({"a"});
  await_asleep(2, "a");
  const auto first = submit({Task("a")}).at(0).execution.id;
  EXPECT_THAT(of_any.claimed.get(), ElementsAre(first));
  const auto second = submit({Task("a")}).at(0).execution.id;
  EXPECT_THAT(of_a.claimed.get(), ElementsAre(second));
}

TEST_F(ClaimDeskTest, WhereTheTypeIsNotKnownOneOfEachIsWoken) {
  Call of_a = begin_of({"a"}), again = begin_of({"a"}), of_b = begin_of({"b"});
  await_asleep(2, "a");
  await_asleep(1, "b");
  const int before = store_->looks;
  const std::vector<Submission> unheard{Task("a"), Task("b"), Task("a")};
  store_->submit(unheard);
  desk_.announce({"default", "work", Kind::task}, 1);
  EXPECT_EQ(of_a.claimed.get().size() + of_b.claimed.get().size(), 2U);
  EXPECT_EQ(again.claimed.get().size(), 1U) << "who got all it wanted wakes the next one";
  EXPECT_GE(store_->looks, before + 3);
}

TEST_F(ClaimDeskTest, OneThatTakesSeveralTypesIsWokenForAllOfThem) {
  Call first = begin_of({"a", "b", "c"}, 5), second = begin_of({"a", "b", "c"}, 5);
  await_asleep(2, "b");
  const int before = store_->looks;
  const std::vector<Submission> unheard{Task("a"), Task("b"), Task("c")};
  store_->submit(unheard);
  desk_.announce_everywhere();
  EXPECT_EQ(first.claimed.get().size(), 3U);
  EXPECT_EQ(store_->looks, before + 1);
  second.waiting->cancel();
}

TEST_F(ClaimDeskTest, WhatIsEmptyIsKnownByType) {
  Call of_a = begin_of({"a"});
  await_asleep(1, "a");
  EXPECT_TRUE(desk_.is_empty({"default", "work", Kind::task, "a"}));
  EXPECT_FALSE(desk_.is_empty({"default", "work", Kind::task, "b"}));
  of_a.waiting->cancel();
  Call of_any = begin();
  await_asleep(1);
  EXPECT_TRUE(desk_.is_empty({"default", "work", Kind::task, "b"}));
  of_any.waiting->cancel();
}

TEST_F(ClaimDeskTest, AfterAVerbThatFailedTheLentLookForThemselves) {
  Call call = begin();
  await_asleep(1);
  const int before = store_->looks;
  const std::vector<Submission> one{Task()};
  {
    const ClaimDesk::Loan loan = desk_.lend(one);
    store_->submit(one);  // and then the answer was lost
  }
  EXPECT_THAT(call.claimed.get(), ElementsAre(one[0].execution.id));
  EXPECT_EQ(store_->looks, before + 1);
}

TEST_F(ClaimDeskTest, WhatIsAnnouncedDuringALoanIsNotSleptThrough) {
  Call call = begin();
  await_asleep(1);
  const std::vector<Submission> one{Task()};
  ClaimDesk::Loan loan = desk_.lend(one);
  const Submission other = Task();
  store_->submit({&other, 1});
  desk_.announce({"default", "work", Kind::task}, 1);  // nobody is asleep to hear it
  loan.deliver();                                      // and the loan brought nothing
  EXPECT_THAT(call.claimed.get(), ElementsAre(other.execution.id));
}

TEST_F(ClaimDeskTest, WhatIsHandedToOneWhoHungUpIsGivenBack) {
  Call call = begin();
  await_asleep(1);
  const std::vector<Submission> one{Task()};
  ClaimDesk::Loan loan = desk_.lend(one);
  store_->submit(one, loan.waiters());
  call.waiting->cancel();
  loan.deliver();
  EXPECT_THAT(call.claimed.get(), IsEmpty());
  EXPECT_THAT(given_back_, ElementsAre(one[0].execution.id));
}

TEST_F(ClaimDeskTest, ALoanOutlivesTheEndOfAllWaits) {
  Call call = begin();
  await_asleep(1);
  const std::vector<Submission> one{Task()};
  ClaimDesk::Loan loan = desk_.lend(one);
  desk_.stop();
  loan.deliver();
  EXPECT_THAT(call.claimed.get(), IsEmpty());
}

TEST_F(ClaimDeskTest, WhoFallsAsleepWhileAVerbIsUnderWayMayJoin) {
  ClaimDesk::Loan loan = desk_.lend_late();
  EXPECT_THAT(loan.waiters().requests, IsEmpty());
  Call call = begin();
  Call for_turns = begin({"work"}, 1, true);
  await_asleep(1);
  Submission task = Task();
  loan.waiters().more({&task.execution});
  ASSERT_EQ(loan.waiters().requests.size(), 1U);
  EXPECT_TRUE(loan.waiters().requests[0].tasks);
  task.execution.queue = "elsewhere";
  loan.waiters().more({&task.execution});
  EXPECT_EQ(loan.waiters().requests.size(), 1U);
  loan.deliver();
  call.waiting->cancel();
  for_turns.waiting->cancel();
  EXPECT_THAT(call.claimed.get(), IsEmpty());
}

// ---- claims that are said again

TEST_F(ClaimDeskTest, AClaimThatIsSaidAgainEndsTheOneThatSleeps) {
  Call first = say("c");
  await_asleep(1);
  Call again = say("c");
  EXPECT_THAT(first.claimed.get(), IsEmpty());
  await_asleep(1);
  const auto id = submit({Task()}).at(0).execution.id;
  EXPECT_THAT(again.claimed.get(), ElementsAre(id));
}

// The verb has handed the first one a task, and has not come to say so.
TEST_F(ClaimDeskTest, AClaimThatIsSaidAgainGetsWhatTheFirstIsJustBeingHanded) {
  Call first = say("c");
  await_asleep(1);
  std::optional<Call> again;
  ExecutionId id;
  {
    const std::vector<Submission> one{Task()};
    ClaimDesk::Loan loan = desk_.lend(one);
    id = store_->submit(one, loan.waiters()).at(0).execution.id;
    again = say("c");
    first.waiting->cancel();
    loan.deliver();
  }
  EXPECT_THAT(again->claimed.get(), ElementsAre(id));
  EXPECT_THAT(given_back_, IsEmpty());
}

TEST_F(ClaimDeskTest, AClaimThatIsSaidAgainAfterItsAnswerGetsTheSame) {
  Call first = say("c");
  await_asleep(1);
  const auto id = submit({Task()}).at(0).execution.id;
  EXPECT_THAT(first.claimed.get(), ElementsAre(id));
  EXPECT_THAT(say("c").claimed.get(), ElementsAre(id));
  EXPECT_THAT(say("c").claimed.get(), ElementsAre(id));
}

TEST_F(ClaimDeskTest, AClaimThatHungUpWhileItsPredecessorWasHandedSomethingGivesItBack) {
  Call first = say("c");
  await_asleep(1);
  ExecutionId id;
  {
    const std::vector<Submission> one{Task()};
    ClaimDesk::Loan loan = desk_.lend(one);
    id = store_->submit(one, loan.waiters()).at(0).execution.id;
    Call again = say("c");
    again.waiting->cancel();
    loan.deliver();
    EXPECT_THAT(again.claimed.get(), IsEmpty());
  }
  EXPECT_THAT(given_back_, ElementsAre(id));
}

}  // namespace
}  // namespace hapax
