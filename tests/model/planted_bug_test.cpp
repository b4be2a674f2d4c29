// The comparison itself is put to the test: a store with a planted bug must be found out, and by a short sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "model/comparison.h"
#include "model/generator.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"

namespace hapax::model {
namespace {

// The memory store, passing everything on; each bug overrides what it spoils.
class Honest : public ForwardingStore {
 public:
  explicit Honest(const Clock& clock) : ForwardingStore(open_memory_store(clock)) {}
};

class WithoutFingerprint final : public Honest {
 public:
  using Honest::Honest;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters& waiters) override {
    auto outcomes = store_->submit(submissions, waiters);
    for (SubmitOutcome& outcome : outcomes) {
      if (outcome.kind == SubmitOutcome::Kind::conflict) outcome.kind = SubmitOutcome::Kind::duplicate;
    }
    return outcomes;
  }
};

class WithoutFencing final : public Honest {
 public:
  using Honest::Honest;
  // Takes any token of a running attempt for the current one.
  std::vector<FinishOutcome> finish(std::span<const Report> reports, Waiters&) override {
    std::vector<FinishOutcome> outcomes;
    for (Report report : reports) {
      for (const char* name_space : {"default", "tenant"}) {
        const auto execution = store_->find(name_space, report.token.execution);
        if (execution && execution->status == Status::running) {
          report.token = {execution->id, execution->attempt, *execution->lease_secret};
        }
      }
      outcomes.push_back(store_->finish({&report, 1}).at(0));
    }
    return outcomes;
  }
};

class WithoutHoldOfActiveOwners final : public Honest {
 public:
  using Honest::Honest;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters&) override {
    std::vector<SubmitOutcome> outcomes;
    for (const Submission& submission : submissions) {
      if (submission.execution.identity) release_if_past_ttl(submission.execution);
      outcomes.push_back(store_->submit({&submission, 1}).at(0));
    }
    return outcomes;
  }

 private:
  void release_if_past_ttl(const Execution& execution) {
    const auto found = store_->find_identity(execution.identity->hash);
    if (found && found->entry.expires_at && *found->entry.expires_at <= store_->now()) {
      store_->release_identity(execution.name_space, execution.identity->hash);
    }
  }
};

// What is handed out stays claimable for others.
class WithoutLeaseOfHandedOut final : public Honest {
 public:
  using Honest::Honest;
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, Waiters& waiters) override {
    auto outcomes = store_->submit(submissions, waiters);
    for (const ClaimOutcome& outcome : waiters.outcomes) {
      for (const Execution& each : outcome.executions) {
        const Extension give_back{{each.id, each.attempt, *each.lease_secret}, Duration(0)};
        store_->extend({&give_back, 1});
      }
    }
    return outcomes;
  }
};

class WithoutMaxRunning final : public Honest {
 public:
  using Honest::Honest;
  void set_policies(std::shared_ptr<const QueuePolicies> policies) override {
    auto spoilt = std::make_shared<QueuePolicies>(*policies);
    for (const char* name_space : {"default", "tenant"}) {
      for (const char* queue : {"a", "b", "c"}) {
        QueuePolicy policy = policies->of(name_space, queue);
        policy.max_running.reset();
        spoilt->set(name_space, queue, policy);
      }
    }
    store_->set_policies(spoilt);
  }
};

class WithoutReplay final : public Honest {
 public:
  using Honest::Honest;
  // Runs a control operation again whenever it is asked for.
  std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) override {
    std::vector<ControlOutcome> outcomes;
    for (ControlRequest request : requests) {
      request.request_key += "#" + std::to_string(next_++);
      outcomes.push_back(store_->control({&request, 1}).at(0));
    }
    return outcomes;
  }

 private:
  int next_ = 0;
};

// The same for what it keeps of activities.
class HonestRows : public ActivityRows {
 public:
  explicit HonestRows(ActivityRows& rows) : rows_(rows) {}

  std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) override {
    return rows_.find(name_space, id);
  }
  std::vector<ActivityRow> list(const ActivityFilter& filter) override { return rows_.list(filter); }
  std::vector<bool> change(std::span<const ActivityChange> changes) override { return rows_.change(changes); }
  DueActivities due(std::int32_t limit) override { return rows_.due(limit); }
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override { return rows_.record(runs); }
  std::vector<ActivityRun> runs(const RunFilter& filter) override { return rows_.runs(filter); }
  std::int64_t purge_runs(Time before, std::int32_t limit) override { return rows_.purge_runs(before, limit); }

 protected:
  ActivityRows& rows_;
};

template <class Rows>
class WithRows final : public Honest {
 public:
  explicit WithRows(const Clock& clock) : Honest(clock), rows_(store_->activities()) {}
  ActivityRows& activities() override { return rows_; }

 private:
  Rows rows_;
};

class WithoutRevisions final : public HonestRows {
 public:
  using HonestRows::HonestRows;
  std::vector<bool> change(std::span<const ActivityChange> changes) override {
    std::vector<bool> did;
    for (ActivityChange change : changes) {
      const auto stored = rows_.find(change.row.name_space, change.row.id);
      change.row.revision = stored ? stored->revision : 0;
      did.push_back(rows_.change({&change, 1}).at(0));
    }
    return did;
  }
};

class WithoutMakingUp final : public HonestRows {
 public:
  using HonestRows::HonestRows;
  // What was skipped stays skipped.
  std::vector<ActivityRun> record(std::span<const ActivityRun> runs) override {
    std::vector<ActivityRun> recorded;
    for (ActivityRun run : runs) {
      if (is_known(run)) run.disposition = Disposition::skipped;
      recorded.push_back(rows_.record({&run, 1}).at(0));
    }
    return recorded;
  }

 private:
  bool is_known(const ActivityRun& wanted) {
    RunFilter all;
    all.name_space = wanted.name_space;
    all.activity = wanted.activity;
    for (const ActivityRun& run : rows_.runs(all)) {
      if (run.occurrence == wanted.occurrence) return true;
    }
    return false;
  }
};

class WithoutOrderAtEqualTimes final : public HonestRows {
 public:
  using HonestRows::HonestRows;
  std::vector<ActivityRun> runs(const RunFilter& filter) override {
    auto runs = rows_.runs(filter);
    std::sort(runs.begin(), runs.end(), [](const ActivityRun& a, const ActivityRun& b) {
      return std::tie(b.at, a.occurrence) < std::tie(a.at, b.occurrence);
    });
    return runs;
  }
};

template <class AnyStore>
class HomeOf final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override { return std::make_unique<AnyStore>(clock); }
};

template <class AnyStore>
MakeHome home_of() {
  return [] { return std::make_unique<HomeOf<AnyStore>>(); };
}

template <class Bug>
void expect_found_by_a_short_sequence(std::size_t longest,
                                      Sequence (*generate_sequence)(std::uint64_t, std::size_t) = generate) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Sequence sequence = generate_sequence(seed, 60);
    if (!compare(sequence, home_of<Bug>())) continue;
    const Sequence minimal = minimise(sequence, home_of<Bug>());
    EXPECT_TRUE(compare(minimal, home_of<Bug>()));
    EXPECT_LE(minimal.size(), longest) << describe_failure(minimal, home_of<Bug>());
    return;
  }
  FAIL() << "500 sequences did not find it";
}

TEST(PlantedBug, HonestStoreIsNotSuspected) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_FALSE(compare(generate(seed, 60), home_of<Honest>())) << "seed " << seed;
    EXPECT_FALSE(compare(generate_with_waiters(seed, 60), home_of<Honest>())) << "seed " << seed;
    EXPECT_FALSE(compare(generate_activities(seed, 60), home_of<WithRows<HonestRows>>())) << seed;
  }
}

TEST(PlantedBug, MissingFingerprintIsFound) { expect_found_by_a_short_sequence<WithoutFingerprint>(2); }

TEST(PlantedBug, AcceptedStaleTokenIsFound) { expect_found_by_a_short_sequence<WithoutFencing>(6); }

TEST(PlantedBug, ForgottenHoldOfAnActiveOwnerIsFound) {
  expect_found_by_a_short_sequence<WithoutHoldOfActiveOwners>(4);
}

TEST(PlantedBug, HandingOutWithoutALeaseIsFound) {
  expect_found_by_a_short_sequence<WithoutLeaseOfHandedOut>(4, generate_with_waiters);
}

TEST(PlantedBug, IgnoredMaxRunningIsFound) { expect_found_by_a_short_sequence<WithoutMaxRunning>(5); }

TEST(PlantedBug, OperationThatRunsAgainIsFound) { expect_found_by_a_short_sequence<WithoutReplay>(4); }

TEST(PlantedBug, IgnoredRevisionOfAnActivityIsFound) {
  expect_found_by_a_short_sequence<WithRows<WithoutRevisions>>(2, generate_activities);
}

TEST(PlantedBug, SkippedFiringThatCannotBeMadeUpForIsFound) {
  expect_found_by_a_short_sequence<WithRows<WithoutMakingUp>>(2, generate_activities);
}

TEST(PlantedBug, WrongOrderOfRunsAtEqualTimesIsFound) {
  expect_found_by_a_short_sequence<WithRows<WithoutOrderAtEqualTimes>>(3, generate_activities);
}

TEST(PlantedBug, SameSeedGivesTheSameSequence) {
  const auto describe = [](const Sequence& sequence) {
    std::ostringstream out;
    for (const Step& step : sequence) out << step << '\n';
    return out.str();
  };
  EXPECT_EQ(describe(generate(7, 60)), describe(generate(7, 60)));
  EXPECT_EQ(describe(generate_activities(7, 60)), describe(generate_activities(7, 60)));
}

}  // namespace
}  // namespace hapax::model
