// Lists, claims and histories are bounded in bytes, and lists stay within their namespace.
#include "conformance/workflow_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t kBig = 1 << 20;  // eight of these fill a page
constexpr int kMany = 12;               // so these take two

std::string big_json(char letter = 'x', std::int64_t bytes = kBig) {
  return '"' + std::string(static_cast<std::size_t>(bytes) - 2, letter) + '"';
}

std::int64_t bytes_of(const std::vector<Execution>& executions) {
  std::int64_t bytes = 0;
  for (const Execution& execution : executions) bytes += execution.payload_bytes();
  return bytes;
}
std::int64_t bytes_of(const std::vector<Event>& events) {
  std::int64_t bytes = 0;
  for (const Event& event : events) bytes += event.payload_bytes();
  return bytes;
}

class Pages : public WorkflowTest {
 protected:
  std::vector<ExecutionId> submit_big() {
    std::vector<ExecutionId> ids;
    for (int i = 0; i < kMany; ++i) ids.push_back(submitted(Task().input(big_json())).id);
    return ids;
  }
};
HAPAX_FOR_ALL_STORES(Pages);

TEST_P(Pages, AListEndsWhereItsBytesAreEnough) {
  std::vector<ExecutionId> ids = submit_big();
  std::reverse(ids.begin(), ids.end());
  ListFilter filter{.name_space = "default"};
  std::vector<ExecutionId> seen;
  int pages = 0;
  do {
    const Page page = store().list(filter);
    ASSERT_THAT(page, testing::Not(IsEmpty()));
    EXPECT_LE(bytes_of(page), kPageBytes);
    for (const Execution& execution : page) seen.push_back(execution.id);
    filter.before = page.next;
    ++pages;
  } while (filter.before);
  EXPECT_EQ(seen, ids);
  EXPECT_EQ(pages, 2);
}

TEST_P(Pages, NextIsThereOnlyWhereThereIsMore) {
  for (int i = 0; i < 3; ++i) submitted(Task());
  EXPECT_EQ(store().list({.name_space = "default", .limit = 3}).next, std::nullopt);
  const Page page = store().list({.name_space = "default", .limit = 2});
  EXPECT_THAT(page, SizeIs(2));
  EXPECT_EQ(page.next, page.back().id);
}

TEST_P(Pages, OneThatIsLargerThanAPageIsAPageOfItsOwn) {
  const auto small = submitted(Task()).id;
  const auto large = submitted(Task().input(big_json('x', kPageBytes + 100))).id;
  const Page first = store().list({.name_space = "default"});
  EXPECT_THAT(ids_of(first), ElementsAre(large));
  EXPECT_THAT(ids_of(store().list({.name_space = "default", .before = first.next})), ElementsAre(small));
  EXPECT_THAT(claimed_ids(), ElementsAre(small));
  EXPECT_THAT(claimed_ids(), ElementsAre(large));
}

TEST_P(Pages, DuplicatesOfABatchGoWithoutPayloadsWhereTheirBytesAreEnough) {
  const auto task = [] { return Task().key("k").input(big_json('x', kPageBytes * 3 / 8)); };
  const Execution owner = submitted(task());
  std::vector<Submission> batch{task(), task(), task(), task()};
  for (int i = 0; i < 3; ++i) batch.at(i).brief = true;
  const auto outcomes = store().submit(batch);
  std::vector<bool> omitted;
  for (const SubmitOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::duplicate);
    EXPECT_EQ(outcome.execution.id, owner.id);
    EXPECT_EQ(outcome.execution.input.empty(), outcome.omitted);
    omitted.push_back(outcome.omitted);
  }
  EXPECT_THAT(omitted, ElementsAre(false, false, true, false));
}

TEST_P(Pages, ResultsCountToo) {
  for (int i = 0; i < kMany; ++i) {
    submitted(Task());
    complete(token_of(claim_one()), big_json('r'));
  }
  const Page page = store().list({.name_space = "default", .status = Status::completed});
  EXPECT_LE(bytes_of(page), kPageBytes);
  EXPECT_TRUE(page.next);
}

TEST_P(Pages, AClaimHandsOutWhatFitsAndTheNextOneTheRest) {
  const std::vector<ExecutionId> ids = submit_big();
  const ClaimOutcome first = claim();
  EXPECT_LE(bytes_of(first.executions), kPageBytes);
  EXPECT_TRUE(first.more);
  for (const Execution& execution : first.executions) EXPECT_EQ(execution.input, big_json());
  const ClaimOutcome second = claim();
  EXPECT_FALSE(second.more);
  std::vector<ExecutionId> all = ids_of(first.executions);
  for (const Execution& execution : second.executions) {
    EXPECT_EQ(execution.attempt, 1);
    all.push_back(execution.id);
  }
  EXPECT_EQ(all, ids);
}

// A queue that gave all that was asked of it may be claimed from in another way.
TEST_P(Pages, AClaimFromAFullQueueIsBoundedAsWell) {
  for (int i = 0; i < 4; ++i) submitted(Task().priority(1));
  EXPECT_THAT(claimed_ids({"work"}, 4), SizeIs(4));
  const std::vector<ExecutionId> ids = submit_big();
  const ClaimOutcome first = claim({"work"}, kMany);
  EXPECT_LE(bytes_of(first.executions), kPageBytes);
  EXPECT_TRUE(first.more);
  const ClaimOutcome second = claim({"work"}, kMany);
  std::vector<ExecutionId> all = ids_of(first.executions);
  for (const Execution& execution : second.executions) {
    EXPECT_EQ(execution.attempt, 1);
    EXPECT_EQ(execution.input, big_json());
    all.push_back(execution.id);
  }
  EXPECT_EQ(all, ids);
}

TEST_P(Pages, AHistoryEndsWhereItsBytesAreEnough) {
  start();
  Turn first = turn(claim_turn());
  for (int i = 0; i < kMany; ++i) {
    command(first, Event::Kind::side_effect, "s");
    first.events.back().value = big_json();
  }
  ASSERT_TRUE(commit(first).accepted);
  const ExecutionId run = first.token.execution;
  std::int64_t seen = 0;
  for (auto page = store().history(run, 0, 1000); !page.empty(); page = store().history(run, page.back().no, 1000)) {
    EXPECT_LE(bytes_of(page), kPageBytes);
    seen += std::ssize(page);
  }
  EXPECT_EQ(seen, kMany);
}

TEST_P(Pages, TheEventsOfAClaimEndWhereTheirBytesAreEnough) {
  start();
  Turn first = turn(claim_turn());
  for (int i = 0; i < kMany; ++i) ask_until(first, Event::Kind::wait_signal, std::nullopt, "go");
  ASSERT_TRUE(commit(first).accepted);
  for (int i = 0; i < kMany; ++i) signal("go", big_json());
  std::int64_t told = 0;
  for (int turns = 0; told < kMany && turns < kMany; ++turns) {
    const Execution run = claim_turn();
    ASSERT_THAT(events_, testing::Not(IsEmpty()));
    EXPECT_LE(bytes_of(events_), kPageBytes + kBig);
    told += std::count_if(events_.begin(), events_.end(),
                          [](const Event& event) { return event.kind == Event::Kind::signal; });
    Turn next = turn(run);
    next.seen = events_.back().no;
    ASSERT_TRUE(commit(next).accepted);
  }
  EXPECT_EQ(told, kMany);
}

TEST_P(Pages, CountOfOneNamespaceHasNoOthers) {
  owner_in(Status::running, Task().queue("a"));
  submitted(Task().queue("a"));
  submitted(Task().queue("a").name_space("tenant"));
  EXPECT_THAT(store().count("default"), ElementsAre(QueueCount{"default", "a", 1, 1, now()}));
  EXPECT_THAT(store().count("nobody"), IsEmpty());
}

TEST_P(Pages, AListHasNothingOfAnotherNamespaceWhateverItFilters) {
  const auto run = submitted(Task("w").kind(Kind::workflow).name_space("tenant").key("k")).id;
  submitted(Task("t").name_space("tenant").key("k").parent(run));
  for (const Kind kind : {Kind::task, Kind::workflow}) {
    EXPECT_THAT(store().list({.name_space = "default", .kind = kind}), IsEmpty());
    EXPECT_THAT(store().list({.name_space = "default", .kind = kind, .queue = "work"}), IsEmpty());
    EXPECT_THAT(store().list({.name_space = "default", .kind = kind, .idempotency_key = "k"}), IsEmpty());
    EXPECT_THAT(store().list({.name_space = "default", .kind = kind, .status = Status::pending}), IsEmpty());
    EXPECT_THAT(store().list({.name_space = "default", .kind = kind, .parent = run}), IsEmpty());
  }
  EXPECT_THAT(store().list({.name_space = "tenant", .parent = run}), SizeIs(1));
}

// Merged from all queues by id, however the queues interleave.
TEST_P(Pages, AListMergesItsQueues) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(submitted(Task().queue("q" + std::to_string(i % 7))).id);
  std::reverse(ids.begin(), ids.end());
  std::vector<ExecutionId> seen;
  ListFilter filter{.name_space = "default", .limit = 4};
  do {
    const Page page = store().list(filter);
    for (const Execution& execution : page) seen.push_back(execution.id);
    filter.before = page.next;
  } while (filter.before);
  EXPECT_EQ(seen, ids);
}

}  // namespace
}  // namespace hapax
