// Applies one sequence to two stores on one clock and says where they first differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/stores.h"
#include "model/step.h"

namespace hapax::model {

using Sequence = std::vector<Step>;
using MakeHome = std::function<std::unique_ptr<StoreHome>()>;

struct Difference {
  std::size_t step = 0;  // its index
  std::string text;
};

// Fresh data for both. Nothing if all answers are equal.
std::optional<Difference> compare(const Sequence& sequence, const MakeHome& expected, const MakeHome& actual);

// The smallest part of a sequence found on which the two still differ: steps first, then items of batches.
Sequence minimise(Sequence sequence, const MakeHome& expected, const MakeHome& actual);

// The sequence and where it differs, for a reader.
std::string describe_failure(const Sequence& sequence, const MakeHome& expected, const MakeHome& actual);

}  // namespace hapax::model
