// One step of a random sequence: a call of a store's verb with all its arguments, or a move of the clock.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "store/store.h"

namespace hapax::model {

struct Sweep {
  std::int32_t limit;
};
struct Purge {
  std::int32_t limit;
};
struct Release {
  std::string name_space;
  IdentityHash hash;
};
// The rules of all queues from now on.
struct Policies {
  std::vector<std::tuple<std::string, std::string, QueuePolicy>> queues;  // namespace, queue
};
struct Advance {
  Duration by;
};
struct List {
  ListFilter filter;
};
struct Due {
  std::int32_t limit;
};
struct PurgeRuns {
  Time before;
  std::int32_t limit;
};
// One of the verbs that make something claimable, while somebody waits. Answered with what was handed to those.
struct HandOut {
  std::variant<std::vector<Submission>, std::vector<Report>, std::vector<Turn>> items;
  std::vector<ClaimRequest> waiters;
};
// Reads everything there is.
struct Look {
  std::vector<ExecutionId> runs;  // whose histories are read
  std::vector<std::string> name_spaces;
  std::vector<IdentityHash> hashes;
};

using Step = std::variant<std::vector<Submission>, std::vector<ClaimRequest>, std::vector<Extension>,
                          std::vector<Report>, std::vector<ControlRequest>, std::vector<Turn>, Sweep, Purge, Release,
                          Policies, Advance, List, Look, std::vector<ActivityChange>, std::vector<ActivityRun>, Due,
                          ActivityFilter, RunFilter, PurgeRuns, HandOut>;

struct Contents {
  std::vector<Execution> executions;
  std::vector<std::optional<FoundIdentity>> identities;
  std::vector<QueueCount> counts;
  std::vector<Event> events;

  bool operator==(const Contents&) const = default;
};

struct Thrown {
  std::string what;

  bool operator==(const Thrown&) const = default;
};

using Answer =
    std::variant<std::monostate, std::vector<SubmitOutcome>, std::vector<ClaimOutcome>, std::vector<ExtendOutcome>,
                 std::vector<FinishOutcome>, std::vector<ControlOutcome>, std::vector<TurnOutcome>, SweepOutcome,
                 PurgeOutcome, bool, std::vector<Execution>, Contents, std::vector<bool>, std::vector<ActivityRow>,
                 std::vector<ActivityRun>, DueActivities, std::int64_t, Thrown>;

// The limit of a read that wants all there is.
inline constexpr std::int32_t kEverything = 100'000;

// Does the step on a store. Moving the clock is left to its owner.
Answer perform(const Step& step, Store& store);

std::ostream& operator<<(std::ostream& out, const Step& step);

// Effects in an order of their own, without types: a store may tell of them in any order, of one more than once, and
// without the type if it has not read it.
Answer in_order(Answer answer);

// Both answers, only as far as they differ.
std::string describe_difference(const Answer& expected, const Answer& actual);

}  // namespace hapax::model
