// Tests that conditional writes hold among concurrent writers: all that the store relies on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/s3/object_store.h"

namespace hapax {

inline constexpr std::string_view kNeedsConditions =
    "Hapax cannot keep its promises there; use a provider that has conditional writes, such as AWS S3 or Ceph";

// One of several conditional writes of one object at the same time.
struct Racer {
  enum class End { won, lost, unknown };

  End end = End::lost;
  std::string body;
};

// Exactly one is to win, and what it wrote is to be what is there. What is wrong otherwise.
std::optional<std::string> judge_race(const std::vector<Racer>& racers, const std::string& found);

// Tests it on its own objects under `doctor/`, which it removes again, in some hundred requests. Throws Failure::misuse
// if conditions are not honoured, or not among concurrent writers.
void require_conditional_writes(ObjectStore& objects);

}  // namespace hapax
