#include <set>

#include "conformance/store_test.h"

namespace hapax {
namespace {

using Kind = SubmitOutcome::Kind;

struct Meeting {
  Status owner;
  Reuse reuse;
};

constexpr Status kStatuses[] = {Status::pending, Status::running,   Status::suspended, Status::completed,
                                Status::failed,  Status::cancelled, Status::timed_out};
constexpr Reuse kPolicies[] = {Reuse::allow_failed, Reuse::reject, Reuse::allow_closed, Reuse::replace};

// The table of the contract, written out on its own: true where a new execution is created.
bool creates(Status owner, Reuse reuse) {
  if (reuse == Reuse::replace) return true;
  if (reuse == Reuse::reject) return false;
  if (reuse == Reuse::allow_closed) return is_closed(owner);
  return std::set{Status::failed, Status::cancelled, Status::timed_out}.contains(owner);
}

class ReuseMatrix : public StoreTest {
 protected:
  template <class Check>
  void for_every_meeting(Check check) {
    for (const Status status : kStatuses) {
      for (const Reuse reuse : kPolicies) {
        const std::string key = std::string(to_string(status)) + "-" + std::string(to_string(reuse));
        SCOPED_TRACE(key);
        check(Meeting{status, reuse}, owner_in(status, Task().queue(key).key(key)), key);
      }
    }
  }
};
HAPAX_FOR_ALL_STORES(ReuseMatrix);

TEST_P(ReuseMatrix, DecidesWhetherTheOwnerStandsOrMakesWay) {
  for_every_meeting([&](const Meeting& meeting, const Execution& owner, const std::string& key) {
    const Submission submission = Task().queue(key).key(key).reuse(meeting.reuse);
    const SubmitOutcome outcome = submit(submission);
    if (creates(meeting.owner, meeting.reuse)) {
      EXPECT_EQ(outcome.kind, Kind::created);
      EXPECT_EQ(outcome.execution.id, submission.execution.id);
      EXPECT_EQ(outcome.superseded, owner.id);
      EXPECT_EQ(store().find_identity(owner.identity->hash)->entry.owner, submission.execution.id);
    } else {
      EXPECT_EQ(outcome.kind, Kind::duplicate);
      EXPECT_EQ(outcome.execution, owner);
      EXPECT_EQ(outcome.superseded, std::nullopt);
      EXPECT_EQ(store().find_identity(owner.identity->hash)->entry.owner, owner.id);
    }
  });
}

TEST_P(ReuseMatrix, OnlyReplaceTouchesTheOwnerAndOnlyAnActiveOne) {
  for_every_meeting([&](const Meeting& meeting, const Execution& owner, const std::string& key) {
    submit(Task().queue(key).key(key).reuse(meeting.reuse));
    const Execution after = find(owner.id).value();
    if (meeting.reuse == Reuse::replace && !is_closed(meeting.owner)) {
      EXPECT_EQ(after.cancel_requested_at, now());
      EXPECT_EQ(after.status, meeting.owner == Status::running ? Status::running : Status::cancelled);
    } else {
      EXPECT_EQ(after, owner);
    }
  });
}

TEST_P(ReuseMatrix, OtherInputConflictsExactlyWhereItWouldBeADuplicate) {
  for_every_meeting([&](const Meeting& meeting, const Execution&, const std::string& key) {
    const SubmitOutcome outcome = submit(Task().queue(key).key(key).input("2").reuse(meeting.reuse));
    EXPECT_EQ(outcome.kind, creates(meeting.owner, meeting.reuse) ? Kind::created : Kind::conflict);
  });
}

TEST_P(ReuseMatrix, DryRunForetellsTheAnswer) {
  for_every_meeting([&](const Meeting& meeting, const Execution& owner, const std::string& key) {
    Submission submission = Task().queue(key).key(key).reuse(meeting.reuse).dry_run();
    const SubmitOutcome foretold = submit(submission);
    EXPECT_EQ(find(owner.id), owner);
    submission.dry_run = false;
    EXPECT_EQ(submit(submission), foretold);
  });
}

TEST_P(ReuseMatrix, TombstoneDecidesLikeItsOwnerDid) {
  for (const Status status : {Status::completed, Status::failed, Status::cancelled, Status::timed_out}) {
    for (const Reuse reuse : kPolicies) {
      const std::string key = std::string(to_string(status)) + "-" + std::string(to_string(reuse));
      SCOPED_TRACE(key);
      const Execution owner = owner_in(status, Task().queue(key).key(key).ttl(24h));
      set_retention(key, 1s);
      clock_.advance(1s);
      store().purge(100);
      ASSERT_EQ(find(owner.id), std::nullopt);

      const SubmitOutcome outcome = submit(Task().queue(key).key(key).reuse(reuse));
      EXPECT_EQ(outcome.kind, creates(status, reuse) ? Kind::created : Kind::duplicate);
      EXPECT_EQ(outcome.purged, !creates(status, reuse));
      EXPECT_EQ(outcome.superseded, creates(status, reuse) ? std::optional(owner.id) : std::nullopt);
    }
  }
}

}  // namespace
}  // namespace hapax
