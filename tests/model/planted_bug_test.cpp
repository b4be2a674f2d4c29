// The comparison itself is put to the test: a store with a planted bug must be found out, and by a short sequence.
#include <gtest/gtest.h>

#include <sstream>

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
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions) override {
    auto outcomes = store_->submit(submissions);
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
  std::vector<FinishOutcome> finish(std::span<const Report> reports) override {
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
  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions) override {
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
void expect_found_by_a_short_sequence(std::size_t longest) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Sequence sequence = generate(seed, 60);
    if (!compare(sequence, home_of<Honest>(), home_of<Bug>())) continue;
    const Sequence minimal = minimise(sequence, home_of<Honest>(), home_of<Bug>());
    EXPECT_TRUE(compare(minimal, home_of<Honest>(), home_of<Bug>()));
    EXPECT_LE(minimal.size(), longest) << describe_failure(minimal, home_of<Honest>(), home_of<Bug>());
    return;
  }
  FAIL() << "500 sequences did not find it";
}

TEST(PlantedBug, HonestStoreIsNotSuspected) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_FALSE(compare(generate(seed, 60), home_of<Honest>(), home_of<Honest>())) << "seed " << seed;
  }
}

TEST(PlantedBug, MissingFingerprintIsFound) { expect_found_by_a_short_sequence<WithoutFingerprint>(2); }

TEST(PlantedBug, AcceptedStaleTokenIsFound) { expect_found_by_a_short_sequence<WithoutFencing>(6); }

TEST(PlantedBug, ForgottenHoldOfAnActiveOwnerIsFound) {
  expect_found_by_a_short_sequence<WithoutHoldOfActiveOwners>(4);
}

TEST(PlantedBug, IgnoredMaxRunningIsFound) { expect_found_by_a_short_sequence<WithoutMaxRunning>(5); }

TEST(PlantedBug, OperationThatRunsAgainIsFound) { expect_found_by_a_short_sequence<WithoutReplay>(4); }

TEST(PlantedBug, SameSeedGivesTheSameSequence) {
  const auto describe = [](const Sequence& sequence) {
    std::ostringstream out;
    for (const Step& step : sequence) out << step << '\n';
    return out.str();
  };
  EXPECT_EQ(describe(generate(7, 60)), describe(generate(7, 60)));
}

}  // namespace
}  // namespace hapax::model
