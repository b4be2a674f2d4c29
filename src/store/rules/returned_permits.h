// A task that is given back was not started: its permit of the queue's rate limit goes back, too. The same rule in
// every store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "store/store.h"

namespace hapax {

struct ReturnedPermits {
  std::string name_space, queue;
  std::int64_t count = 0;
};

// The permits of each queue with a rate limit whose tasks these extensions gave back.
inline std::vector<ReturnedPermits> returned_permits(std::span<const Extension> extensions,
                                                     const std::vector<ExtendOutcome>& outcomes,
                                                     const QueuePolicies& policies) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].ok || extensions[i].lease > Duration(0)) continue;
    const auto is_it = [&](const Changed& each) { return each.id == extensions[i].token.execution; };
    for (const std::vector<Changed>* changed : {&outcomes[i].effects.ready, &outcomes[i].effects.closed}) {
      const auto found = std::find_if(changed->begin(), changed->end(), is_it);
      if (found == changed->end()) continue;
      const bool has_rate = found->kind == Kind::task && policies.of(found->name_space, found->queue).rate_limit;
      if (has_rate) ++counts[{found->name_space, found->queue}];
      break;
    }
  }
  std::vector<ReturnedPermits> returned;
  for (const auto& [name, count] : counts) returned.push_back({name.first, name.second, count});
  return returned;
}

}  // namespace hapax
