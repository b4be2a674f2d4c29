// The comparison itself is put to the test: a kernel with a planted bug must be found out, by the sequences that CI
// runs and by a short one. The kernel and the memory store are compiled a second time for this, from a copy with the
// bugs in it: see plant_bugs.py.
#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.h"
#include "model/generator.h"
#include "store/memory/memory_store.h"

namespace hapax::model {

int planted = 0;  // the bug that is switched on; 0: none

namespace {

constexpr std::uint64_t kSeeds = 2000, kOtherSeeds = 500;  // as many as model_test has
constexpr std::size_t kSteps = 60;
constexpr std::size_t kShort = 24;  // steps of a minimised sequence

struct PlantedBug {
  int number;
  std::string_view rule, what;
  int places;  // where its text was found in the kernel
};

const std::vector<PlantedBug> kBugs{
#include "planted_bugs.inc"
};

class MemoryHome final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override { return open_memory_store(clock); }
};

std::unique_ptr<StoreHome> make_home() { return std::make_unique<MemoryHome>(); }

std::ostream& operator<<(std::ostream& out, const PlantedBug& bug) { return out << bug.rule << ": " << bug.what; }

// "claim_order: priority does not count" is ClaimOrder_PriorityDoesNotCount.
std::string test_name(const PlantedBug& bug) {
  std::string name;
  bool starts_word = true;
  for (const char c : std::string(bug.rule) + "|" + std::string(bug.what)) {
    const bool is_letter = std::isalnum(static_cast<unsigned char>(c));
    if (is_letter) name += starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    if (c == '|') name += '_';
    starts_word = !is_letter && c != '\'';
  }
  return name;
}

class Planted : public testing::TestWithParam<PlantedBug> {
 protected:
  ~Planted() override { planted = 0; }
};
INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(kBugs),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Planted, IsFoundByAShortSequence) {
  const PlantedBug& bug = GetParam();
  ASSERT_EQ(bug.places, 1) << "the text that '" << bug.rule << ": " << bug.what
                           << "' changes must be in the kernel once: "
                           << "plant it anew in tests/model/planted_bugs.txt";
  const bool is_usual = bug.rule != "hand_out" && bug.rule != "activity";
  const auto generate_one = bug.rule == "hand_out"   ? generate_with_waiters
                            : bug.rule == "activity" ? generate_activities
                                                     : generate;
  planted = bug.number;
  for (std::uint64_t seed = 1; seed <= (is_usual ? kSeeds : kOtherSeeds); ++seed) {
    const Sequence sequence = generate_one(seed, kSteps);
    if (!compare(sequence, make_home)) continue;
    const Sequence minimal = minimise(sequence, make_home);
    EXPECT_TRUE(compare(minimal, make_home));
    EXPECT_LE(minimal.size(), kShort) << describe_failure(minimal, make_home);
    RecordProperty("seed", std::to_string(seed));
    return;
  }
  FAIL() << "no sequence found it";
}

TEST(PlantedBugs, AreInEveryRule) {
  for (const std::string_view rule : {"submit", "finish", "extend", "claim_order", "claim_again", "claim_limits",
                                      "hand_out", "sweep", "purge", "control", "turn", "activity"}) {
    const bool has_one =
        std::any_of(kBugs.begin(), kBugs.end(), [&](const PlantedBug& bug) { return bug.rule == rule; });
    EXPECT_TRUE(has_one) << rule;
  }
}

TEST(PlantedBugs, AreNotSuspectedWhereThereAreNone) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_FALSE(compare(generate(seed, kSteps), make_home)) << "seed " << seed;
    EXPECT_FALSE(compare(generate_with_waiters(seed, kSteps), make_home)) << "seed " << seed;
    EXPECT_FALSE(compare(generate_activities(seed, kSteps), make_home)) << "seed " << seed;
  }
}

TEST(Generator, GivesTheSameSequenceForTheSameSeed) {
  const auto describe = [](const Sequence& sequence) {
    std::ostringstream out;
    for (const Step& step : sequence) out << step << '\n';
    return out.str();
  };
  EXPECT_EQ(describe(generate(7, kSteps)), describe(generate(7, kSteps)));
  EXPECT_EQ(describe(generate_activities(7, kSteps)), describe(generate_activities(7, kSteps)));
}

}  // namespace
}  // namespace hapax::model
