#include <algorithm>

#include "conformance/store_test.h"

namespace hapax {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Read : public StoreTest {
 protected:
  std::vector<ExecutionId> list(const ListFilter& filter) { return ids_of(store().list(filter)); }
};
HAPAX_FOR_ALL_STORES(Read);

TEST_P(Read, FindKnowsOnlyItsNamespace) {
  const auto id = submitted(Task()).id;
  EXPECT_TRUE(find(id, "default").has_value());
  EXPECT_EQ(find(id, "tenant"), std::nullopt);
}

TEST_P(Read, ListIsNewestFirst) {
  const auto first = submitted(Task()).id;
  const auto second = submitted(Task().priority(9)).id;
  const auto third = submitted(Task().delay(1h)).id;
  EXPECT_THAT(list({.name_space = "default"}), ElementsAre(third, second, first));
}

TEST_P(Read, ListShowsWholeExecutions) {
  owner_in(Status::failed, Task().key("k").concurrency_key("c").timeout(5s));
  const auto listed = store().list({.name_space = "default"});
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0], find(listed[0].id));
}

TEST_P(Read, ListPagesByCursor) {
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 7; ++i) ids.push_back(submitted(Task()).id);
  std::reverse(ids.begin(), ids.end());
  std::vector<ExecutionId> seen;
  ListFilter filter{.name_space = "default", .limit = 3};
  for (auto page = list(filter); !page.empty(); page = list(filter)) {
    EXPECT_LE(page.size(), 3u);
    seen.insert(seen.end(), page.begin(), page.end());
    filter.before = page.back();
  }
  EXPECT_EQ(seen, ids);
}

TEST_P(Read, ListFiltersByEveryField) {
  const auto plain = submitted(Task()).id;
  const auto queue = submitted(Task().queue("q")).id;
  const auto type = submitted(Task("t")).id;
  const auto keyed = submitted(Task().key("k")).id;
  const auto step = submitted(Task().parent(plain)).id;
  const auto workflow = submitted(Task().kind(Kind::workflow)).id;
  const auto cancelled = owner_in(Status::cancelled, Task()).id;
  submitted(Task().name_space("tenant").queue("q"));

  EXPECT_THAT(list({.name_space = "default", .queue = "q"}), ElementsAre(queue));
  EXPECT_THAT(list({.name_space = "default", .type = "t"}), ElementsAre(type));
  EXPECT_THAT(list({.name_space = "default", .idempotency_key = "k"}), ElementsAre(keyed));
  EXPECT_THAT(list({.name_space = "default", .parent = plain}), ElementsAre(step));
  EXPECT_THAT(list({.name_space = "default", .kind = Kind::workflow}), ElementsAre(workflow));
  EXPECT_THAT(list({.name_space = "default", .status = Status::cancelled}), ElementsAre(cancelled));
  EXPECT_THAT(list({.name_space = "default", .queue = "q", .type = "t"}), IsEmpty());
  EXPECT_THAT(list({.name_space = "default", .queue = "work", .status = Status::pending, .before = step, .limit = 2}),
              ElementsAre(keyed, type));
}

TEST_P(Read, ListByStatusKnowsAllOfThem) {
  for (const Status status : {Status::pending, Status::running, Status::suspended, Status::completed, Status::failed,
                              Status::cancelled, Status::timed_out}) {
    SCOPED_TRACE(to_string(status));
    const Execution task = owner_in(status, Task().queue(std::string(to_string(status))));
    EXPECT_THAT(list({.name_space = "default", .kind = task.kind, .status = status}), ElementsAre(task.id));
  }
}

TEST_P(Read, CountHasEveryQueueThatWasUsed) {
  submitted(Task().queue("b").delay(10s));
  submitted(Task().queue("b").run_at(now() - 5s).priority(-3));
  owner_in(Status::running, Task().queue("a"));
  owner_in(Status::completed, Task().queue("closed"));
  submitted(Task().queue("z").name_space("a-tenant"));
  EXPECT_THAT(
      store().count(),
      ElementsAre(QueueCount{"a-tenant", "z", 1, 0, now()}, QueueCount{"default", "a", 0, 1, std::nullopt},
                  QueueCount{"default", "b", 2, 0, now() - 5s}, QueueCount{"default", "closed", 0, 0, std::nullopt}));
}

TEST_P(Read, CountNamesAQueueThatWasUsedEvenWhenItIsEmpty) {
  set_retention("work", 0s);
  set_retention("flows", 0s);
  complete(token_of((submitted(Task()), claim_one())));
  submitted(Task("flow").kind(hapax::Kind::workflow).queue("flows"));
  submitted(Task().queue("other").name_space("tenant"));
  submit(Task().queue("dry").dry_run());
  ASSERT_TRUE(store().list({.name_space = "default"}).empty());
  const auto counts = store().count();
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.at(0), (QueueCount{"default", "flows", 1, 0, now()}));
  EXPECT_EQ(counts.at(1), (QueueCount{"default", "work", 0, 0, std::nullopt}));
  EXPECT_EQ(counts.at(2), (QueueCount{"tenant", "other", 1, 0, now()}));
  EXPECT_EQ(second_handle()->count(), counts);
}

TEST_P(Read, CountOfAnEmptyStoreIsEmpty) { EXPECT_THAT(store().count(), IsEmpty()); }

TEST_P(Read, FindIdentityShowsEntryAndOwner) {
  const Execution task = submitted(Task("charge").key("k").ttl(1h));
  const FoundIdentity found = store().find_identity(key_hash("charge", "k")).value();
  const LedgerEntry expected{*task.identity, "default", task.id, task.input_hash, now(), now() + 1h, std::nullopt};
  EXPECT_EQ(found.entry, expected);
  EXPECT_EQ(found.owner, task);
  EXPECT_TRUE(found.live);
  EXPECT_EQ(found.expires_at, found.entry.expires_at);
}

TEST_P(Read, FindIdentityShowsADeadEntryAsDead) {
  owner_in(Status::completed, Task().key("k").ttl(1h));
  clock_.advance(1h);
  EXPECT_FALSE(store().find_identity(key_hash("work", "k"))->live);
}

TEST_P(Read, FindIdentityOfAnUnknownHashIsNothing) {
  EXPECT_EQ(store().find_identity(key_hash("work", "unknown")), std::nullopt);
}

TEST_P(Read, ReleasedIdentityIsFreeForTheNextSubmission) {
  const Execution owner = submitted(Task().key("k"));
  EXPECT_TRUE(store().release_identity("default", key_hash("work", "k")));
  const SubmitOutcome outcome = submit(Task().key("k").input("2"));
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::created);
  EXPECT_EQ(outcome.superseded, std::nullopt);
  EXPECT_EQ(find(owner.id), owner);
}

TEST_P(Read, ReleaseOfAnUnknownIdentityIsFalse) {
  submitted(Task().key("k"));
  EXPECT_TRUE(store().release_identity("default", key_hash("work", "k")));
  EXPECT_FALSE(store().release_identity("default", key_hash("work", "k")));
}

TEST_P(Read, ReleaseFromAnotherNamespaceIsFalse) {
  submitted(Task().key("k"));
  EXPECT_FALSE(store().release_identity("tenant", key_hash("work", "k")));
  EXPECT_EQ(submit(Task().key("k")).kind, SubmitOutcome::Kind::duplicate);
}

TEST_P(Read, SettingsComeBackAsTheyWerePut) {
  using Of = SettingDocument::Kind;
  const SettingDocument queue{"default", Of::queue, "payments", R"({"retention":"30d"})"};
  const SettingDocument type{"default", Of::type, "payments", R"({"reuse":"reject"})"};
  const SettingDocument tenant{"tenant", Of::queue, "payments", "{}"};
  for (const SettingDocument& setting : {queue, type, tenant}) store().put_setting(setting);
  EXPECT_THAT(store().settings(), testing::UnorderedElementsAre(queue, type, tenant));
}

TEST_P(Read, LastSettingWins) {
  SettingDocument setting{"default", SettingDocument::Kind::queue, "payments", "{}"};
  store().put_setting(setting);
  setting.document = R"({"paused":true})";
  store().put_setting(setting);
  EXPECT_THAT(store().settings(), ElementsAre(setting));
}

TEST_P(Read, NowIsTheClocksTime) {
  clock_.advance(5s);
  EXPECT_EQ(store().now(), ManualClock::kStart + 5s);
}

TEST_P(Read, CheckOfAHealthyStoreChangesNothing) {
  const Execution task = submitted(Task());
  store().check();
  EXPECT_THAT(store().list({.name_space = "default"}), ElementsAre(task));
}

TEST_P(Read, MigrateOfACurrentStoreChangesNothing) {
  const Execution task = submitted(Task().key("k"));
  store().migrate();
  EXPECT_EQ(find(task.id), task);
}

}  // namespace
}  // namespace hapax
