#include "core/policy.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

using namespace std::chrono_literals;

QueuePolicy running_at_most(std::int32_t max_running) {
  QueuePolicy policy;
  policy.max_running = max_running;
  return policy;
}

TEST(QueuePolicies, AnUnknownQueueHasTheDefaults) { EXPECT_EQ(QueuePolicies{}.of("default", "q"), QueuePolicy{}); }

TEST(QueuePolicies, AQueuesOwnRulesGoBeforeThoseOfItsNameEverywhere) {
  QueuePolicies policies;
  policies.set_everywhere("q", running_at_most(1));
  policies.set("tenant", "q", running_at_most(2));
  EXPECT_EQ(policies.of("tenant", "q").max_running, 2);
  EXPECT_EQ(policies.of("other", "q").max_running, 1);
  EXPECT_EQ(policies.of("tenant", "r").max_running, std::nullopt);
  policies.set("tenant", "q", running_at_most(3));
  EXPECT_EQ(policies.of("tenant", "q").max_running, 3);
}

TEST(QueuePolicies, NamespacesAndQueuesAreNotMixedUp) {
  QueuePolicies policies;
  policies.set("a", "bc", running_at_most(1));
  EXPECT_EQ(policies.of("ab", "c").max_running, std::nullopt);
  EXPECT_EQ(policies.of("bc", "a").max_running, std::nullopt);
}

TEST(QueuePolicies, RetentionIsTheQueuesOrThatOfTheKind) {
  QueuePolicies policies;
  QueuePolicy kept_briefly;
  kept_briefly.retention = 0ms;
  policies.set("default", "brief", kept_briefly);
  EXPECT_EQ(policies.retention("default", "brief", Kind::task), 0ms);
  EXPECT_EQ(policies.retention("default", "brief", Kind::workflow), 0ms);
  EXPECT_EQ(policies.retention("default", "q", Kind::task), std::chrono::days(7));
  EXPECT_EQ(policies.retention("default", "q", Kind::workflow), std::chrono::days(30));
  policies.task_retention = 1h;
  Execution task;
  task.name_space = "default";
  task.queue = "q";
  EXPECT_EQ(policies.retention(task), 1h);
}

TEST(QueuePolicies, AnyQueueMayBeTheOneThatIsDeletedAtOnce) {
  QueuePolicy unretained;
  unretained.retention = 0ms;
  QueuePolicies policies, of_one, everywhere, of_kind;
  EXPECT_FALSE(policies.any_deleted_at_once());
  of_one.set("default", "brief", unretained);
  EXPECT_TRUE(of_one.any_deleted_at_once());
  everywhere.set_everywhere("brief", unretained);
  EXPECT_TRUE(everywhere.any_deleted_at_once());
  of_kind.workflow_retention = 0ms;
  EXPECT_TRUE(of_kind.any_deleted_at_once());
}

}  // namespace
}  // namespace hapax
