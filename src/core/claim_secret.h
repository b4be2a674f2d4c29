// The secrets of claims that may be said again: the same claim has the same secret, so that a store finds what was
// handed out under it. One bit marks them; no other secret has it, so that a store indexes these alone.
#pragma once

#include <string_view>

#include "core/lease.h"

namespace hapax {

LeaseSecret secret_of_claim(std::string_view store_identity, std::string_view name_space, std::string_view worker,
                            std::string_view claim_id);

inline bool is_of_repeatable_claim(const LeaseSecret& secret) { return (secret.bytes[0] & 0x80) != 0; }

// The secret without that mark.
LeaseSecret unmarked(LeaseSecret secret);

}  // namespace hapax
