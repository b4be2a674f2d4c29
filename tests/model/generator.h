// Random sequences. Few keys, queues and request keys, so that everything collides; every token and id that a step
// names was handed out before by an oracle that the generator runs beside.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

#include "model/comparison.h"

namespace hapax::model {

// The same seed gives the same sequence.
Sequence generate(std::uint64_t seed, std::size_t steps);

// The same with claims that wait, for stores that hand out.
Sequence generate_with_waiters(std::uint64_t seed, std::size_t steps);

// The same of what stores keep of activities, which has nothing to do with the rest.
Sequence generate_activities(std::uint64_t seed, std::size_t steps);

}  // namespace hapax::model
