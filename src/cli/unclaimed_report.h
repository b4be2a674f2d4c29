// The types that nobody claims: as `hapax top` and `hapax list --stuck` show them, and as `hapax doctor` does.
#pragma once

#include <span>
#include <string_view>

#include "cli/table.h"
#include "core/finding.h"
#include "engine/unclaimed.h"

namespace hapax {

Table unclaimed_table(std::span<const Unclaimed> unclaimed, Time now);
Finding judge_unclaimed(std::string_view name_space, std::span<const Unclaimed> unclaimed, Time now);

}  // namespace hapax
