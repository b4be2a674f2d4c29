// The checks of `hapax doctor`, each with what to do about it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/finding.h"
#include "core/time.h"
#include "engine/activities.h"

namespace hapax {

// Of this machine.
Finding check_clock(Time now);
Finding check_open_files();

// Of the directory of a file store.
Finding check_disk_space(const std::string& directory);
Finding check_sync_rate(const std::string& directory);

// Whether only its owner can read a file store and the files that SQLite keeps beside it. Nothing if so.
std::optional<Finding> check_privacy(const std::string& file);

// The pure parts.
Finding judge_clock(Time now, bool synchronised);
Finding judge_open_files(std::uint64_t soft, std::uint64_t hard);
Finding judge_disk_space(const std::string& directory, std::uint64_t free_bytes);
// The schedules of a namespace: one that has fired ahead of time was fired by a clock that ran ahead.
Finding judge_schedules(std::string_view name_space, std::span<const ActivityView> activities);
Finding judge_sync_rate(const std::string& directory, double per_second);

}  // namespace hapax
