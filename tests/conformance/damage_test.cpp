// What is stored is checked before it is handed out: a payload that was changed behind the store's back is never seen
// as if it were what was written, and holds up nothing else.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Damage : public WorkflowTest {
 protected:
  // Every payload in which it is found; skips the test where that cannot be done.
  bool damage(const std::string& text) {
    std::string changed = text;
    changed.back() ^= 1;
    return change_payloads(text, changed);
  }

  void expect_damaged(const ExecutionId& id) {
    try {
      find(id);
      ADD_FAILURE() << "a damaged execution was found";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::corrupt) << failure.what();
    }
    const Page page = store().list({.name_space = "default"});
    ASSERT_THAT(page.damaged, SizeIs(1));
    EXPECT_EQ(page.damaged[0].id, id);
    for (const Execution& execution : page) EXPECT_NE(execution.id, id);
    EXPECT_THAT(findings(), testing::Not(IsEmpty()));
  }

  std::vector<std::string> findings() {
    std::vector<std::string> findings;
    std::string from;
    do {
      Inspection part = store().inspect(from, 2);
      for (std::string& finding : part.findings) findings.push_back(std::move(finding));
      from = part.next;
    } while (!from.empty());
    return findings;
  }
};
HAPAX_FOR_ALL_STORES(Damage);

#define HAPAX_DAMAGE(text) \
  if (!damage(text)) GTEST_SKIP() << "payloads cannot be changed here"

TEST_P(Damage, NothingIsFoundWhereThereIsNone) {
  owner_in(Status::completed, Task().key("k"));
  owner_in(Status::failed, Task().key("l"));
  suspended_on_task(Task().input("\"step\""));
  signal("early", "\"payload\"");
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_THAT(store().list({.name_space = "default"}).damaged, IsEmpty());
}

TEST_P(Damage, OfAnInputIsNoticedAndHoldsUpNothingElse) {
  const auto damaged = submitted(Task().input("\"precious\"")).id;
  const auto sound = submitted(Task().input("\"other\"")).id;
  HAPAX_DAMAGE("precious");
  expect_damaged(damaged);
  EXPECT_EQ(find(sound)->input, "\"other\"");
  EXPECT_THAT(claimed_ids(), ElementsAre(sound));
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Damage, OfALargeInputIsNoticed) {
  const auto damaged = submitted(Task().input('"' + std::string(100'000, 'x') + "precious\"")).id;
  HAPAX_DAMAGE("precious");
  expect_damaged(damaged);
  EXPECT_THAT(claimed_ids(), IsEmpty());
}

TEST_P(Damage, OfATypeIsNoticed) {
  const auto damaged = submitted(Task("precious")).id;
  HAPAX_DAMAGE("precious");
  expect_damaged(damaged);
}

// As many damaged ones as are asked for stand before it.
TEST_P(Damage, OfTheFirstOnesIsPassedOverByASmallClaim) {
  for (int i = 0; i < 3; ++i) submitted(Task().priority(1).input("\"precious\""));
  const auto sound = submitted(Task()).id;
  HAPAX_DAMAGE("precious");
  EXPECT_THAT(claimed_ids({"work"}, 1), ElementsAre(sound));
  EXPECT_THAT(claimed_ids({"work"}, 1), IsEmpty());
}

// A queue that gave all that was asked of it may be claimed from in another way.
TEST_P(Damage, InAFullQueueIsPassedOver) {
  for (int i = 0; i < 2; ++i) submitted(Task().priority(1));
  EXPECT_THAT(claimed_ids({"work"}, 2), SizeIs(2));
  submitted(Task().input("\"precious\""));
  const auto sound = submitted(Task()).id;
  HAPAX_DAMAGE("precious");
  EXPECT_THAT(claimed_ids({"work"}, 2), ElementsAre(sound));
  EXPECT_THAT(store().list({.name_space = "default", .status = Status::running}).damaged, IsEmpty()) << "it is leased";
}

// Together they are longer than an answer.
TEST_P(Damage, OfLargeInputsLeavesRoomForTheOthers) {
  const std::string large = '"' + std::string(1 << 20, 'x') + "precious\"";
  for (int i = 0; i < 9; ++i) submitted(Task().priority(1).input(large));
  const auto sound = submitted(Task()).id;
  HAPAX_DAMAGE("precious");
  EXPECT_THAT(claimed_ids({"work"}, 3), ElementsAre(sound));
  EXPECT_THAT(claimed_ids({"work"}, 3), IsEmpty());
}

TEST_P(Damage, OfAResultIsNoticedByWhoeverAsksForIt) {
  const auto damaged = submitted(Task().key("k")).id;
  complete(token_of(claim_one()), "\"precious\"");
  const auto sound = submitted(Task().key("l")).id;
  complete(token_of(claim_one()), "\"other\"");
  HAPAX_DAMAGE("precious");
  expect_damaged(damaged);
  EXPECT_EQ(find(sound)->result, "\"other\"");
  EXPECT_THROW(store().find_identity(key_hash("work", "k")), Failure);
}

TEST_P(Damage, OfAnErrorIsNoticed) {
  const auto damaged = submitted(Task().max_attempts(1)).id;
  const Report report{token_of(claim_one()), Report::Failed{{"Boom", "precious"}, false}};
  store().finish({&report, 1});
  HAPAX_DAMAGE("precious");
  expect_damaged(damaged);
}

TEST_P(Damage, StaysWhateverHappensToTheExecution) {
  const auto damaged = submitted(Task().input("\"precious\"")).id;
  HAPAX_DAMAGE("precious");
  try {
    cancel(damaged);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::corrupt);
  }
  expect_damaged(damaged);
}

TEST_P(Damage, OfARunningOneKeepsNoOtherLeaseFromEnding) {
  submitted(Task().input("\"precious\""));
  const auto sound = submitted(Task()).id;
  EXPECT_THAT(claimed_ids(), SizeIs(2));
  HAPAX_DAMAGE("precious");
  clock_.advance(2min);
  store().sweep(100);
  EXPECT_EQ(status_of(sound), Status::pending);
}

TEST_P(Damage, OfAnEventIsNoticedByWhoeverReadsTheHistory) {
  start();
  Turn first = turn(claim_turn());
  command(first, Event::Kind::side_effect, "s");
  first.events.back().value = "\"precious\"";
  ask_until(first, Event::Kind::wait_signal, std::nullopt, "go");
  ASSERT_TRUE(commit(first).accepted);
  HAPAX_DAMAGE("precious");
  EXPECT_THROW(history(first.token.execution), Failure);
  EXPECT_THAT(findings(), testing::Not(IsEmpty()));
}

TEST_P(Damage, OfASignalIsNotHandedToItsWorkflow) {
  const Execution run = start();
  signal("go", "\"precious\"");
  HAPAX_DAMAGE("precious");
  EXPECT_THAT(findings(), testing::Not(IsEmpty()));
  for (const auto& events : claim_turns().events) {
    for (const Event& event : events) EXPECT_EQ(event.value.value_or("").find("preciou"), std::string::npos);
  }
}

}  // namespace
}  // namespace hapax
