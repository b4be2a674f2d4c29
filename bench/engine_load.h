// The same work through the engine.
#pragma once

#include <cstdint>
#include <string>

namespace hapax::bench {

// Keyed submits one by one, with that many in flight. Submits per second.
double engine_keyed_submits(const std::string& path, std::int64_t tasks, int in_flight);

// Claims and finishes all pending tasks in batches, with that many workers. Tasks per second.
double engine_claim_finish(const std::string& path, std::int64_t tasks, int workers, std::int32_t batch);

}  // namespace hapax::bench
