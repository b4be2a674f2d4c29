#include "core/reuse.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

constexpr Verdict kDuplicate = Verdict::duplicate, kNew = Verdict::create_new, kCancel = Verdict::cancel_owner;

TEST(Reuse, DecidesAsTheMatrixSays) {
  struct Row {
    Status owner;
    Verdict allow_failed, reject, allow_closed, replace;
  };
  const Row rows[] = {
      {Status::pending, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::running, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::suspended, kDuplicate, kDuplicate, kDuplicate, kCancel},
      {Status::completed, kDuplicate, kDuplicate, kNew, kNew},
      {Status::failed, kNew, kDuplicate, kNew, kNew},
      {Status::cancelled, kNew, kDuplicate, kNew, kNew},
      {Status::timed_out, kNew, kDuplicate, kNew, kNew},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(decide(row.owner, Reuse::allow_failed), row.allow_failed) << to_string(row.owner);
    EXPECT_EQ(decide(row.owner, Reuse::reject), row.reject) << to_string(row.owner);
    EXPECT_EQ(decide(row.owner, Reuse::allow_closed), row.allow_closed) << to_string(row.owner);
    EXPECT_EQ(decide(row.owner, Reuse::replace), row.replace) << to_string(row.owner);
  }
}

TEST(Reuse, ADuplicateDiffersFirstByItsTypeThenByItsInput) {
  Execution owner, same;
  owner.type = same.type = "charge";
  owner.identity = same.identity = Identity{};
  EXPECT_EQ(difference(same, owner), Difference::none);
  Execution other_input = same;
  other_input.input_hash = hash_input("2");
  EXPECT_EQ(difference(other_input, owner), Difference::input);
  other_input.identity->strategy = Strategy::contextual;
  EXPECT_EQ(difference(other_input, owner), Difference::none);
  other_input.type = "refund";
  EXPECT_EQ(difference(other_input, owner), Difference::type);
}

TEST(Reuse, WordsAreReadBack) {
  for (Reuse reuse : {Reuse::allow_failed, Reuse::reject, Reuse::allow_closed, Reuse::replace}) {
    EXPECT_EQ(parse_reuse(to_string(reuse)), reuse);
  }
  EXPECT_EQ(parse_reuse("allow"), std::nullopt);
  EXPECT_EQ(parse_reuse(""), std::nullopt);
}

}  // namespace
}  // namespace hapax
