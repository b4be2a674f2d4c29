// Every store against the oracle: random sequences must get the same answers. HAPAX_SEED=n runs that one
// sequence, HAPAX_RUNS=n so many of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "model/comparison.h"
#include "model/generator.h"

namespace hapax::model {
namespace {

constexpr std::uint64_t kFirstSeed = 1;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShare = 5;  // of it all: a sanitizer looks for other mistakes, and takes ten times as long
#else
constexpr std::uint64_t kShare = 1;
#endif
constexpr std::uint64_t kRuns = 2000 / kShare, kHandOutRuns = 500 / kShare, kActivityRuns = 500 / kShare;
constexpr std::size_t kSteps = 60;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

class Model : public testing::TestWithParam<StoreKind> {};
INSTANTIATE_TEST_SUITE_P(Stores, Model, testing::ValuesIn(all_stores()),
                         [](const auto& info) { return info.param.name; });

class HandOutModel : public testing::TestWithParam<StoreKind> {};
INSTANTIATE_TEST_SUITE_P(Stores, HandOutModel, testing::ValuesIn(stores_that_hand_out()),
                         [](const auto& info) { return info.param.name; });

void expect_the_same_answers(const StoreKind& store, Sequence (*generate)(std::uint64_t, std::size_t),
                             std::uint64_t usual_runs) {
  const std::uint64_t first = number_from_environment("HAPAX_SEED", kFirstSeed);
  const std::uint64_t runs =
      number_from_environment("HAPAX_RUNS", std::getenv("HAPAX_SEED") ? 1 : usual_runs / store.slowness);
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    const Sequence sequence = generate(seed, kSteps);
    if (!compare(sequence, store.make)) continue;
    const Sequence minimal = minimise(sequence, store.make);
    FAIL() << "HAPAX_SEED=" << seed << " differs; the minimised sequence:\n" << describe_failure(minimal, store.make);
  }
}

TEST_P(Model, GivesTheAnswersOfTheOracle) { expect_the_same_answers(GetParam(), generate, kRuns); }

TEST_P(HandOutModel, HandsOutWhatTheOracleDoes) {
  expect_the_same_answers(GetParam(), generate_with_waiters, kHandOutRuns);
}

TEST_P(Model, KeepsActivitiesAsTheOracleDoes) {
  expect_the_same_answers(GetParam(), generate_activities, kActivityRuns);
}

}  // namespace
}  // namespace hapax::model
