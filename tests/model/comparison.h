// Applies one sequence to the oracle and to a store, on one clock, and says where they first differ.
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

// On fresh data. Nothing if the store gives the oracle's answers.
std::optional<Difference> compare(const Sequence& sequence, const MakeHome& store);

// The smallest part of a sequence found on which they still differ: steps first, then items of batches.
Sequence minimise(Sequence sequence, const MakeHome& store);

// The sequence and where they differ, for a reader.
std::string describe_failure(const Sequence& sequence, const MakeHome& store);

}  // namespace hapax::model
