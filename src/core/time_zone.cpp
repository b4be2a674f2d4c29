#include "core/time_zone.h"

#include <date/tz.h>

#include <algorithm>

namespace hapax {

using std::chrono::seconds;
using std::chrono::sys_seconds;

struct TimeZone::Zone {
  const date::time_zone* zone;
  std::string name;
};

std::optional<TimeZone> TimeZone::find(const std::string& name) {
  if (name == "localtime") return std::nullopt;  // of this machine; another server's may differ
  try {
    return TimeZone(std::make_shared<const Zone>(Zone{date::locate_zone(name), name}));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

const std::string& TimeZone::name() const { return zone_->name; }

Time TimeZone::to_time(Local local) const {
  const date::local_info info = zone_->zone->get_info(date::local_seconds(local.time_since_epoch()));
  if (info.result == date::local_info::nonexistent) return Time(info.first.end);
  return Time(local.time_since_epoch() - info.first.offset);
}

TimeZone::Local TimeZone::first_from(sys_seconds time) const {
  constexpr auto kLongestRepetition = std::chrono::hours(25);
  const auto local_at = [](sys_seconds instant, seconds offset) { return Local(instant.time_since_epoch() + offset); };
  const date::sys_info now = zone_->zone->get_info(time);
  const Local local = local_at(time, now.offset);
  if (time - now.begin > kLongestRepetition) return local;

  const date::sys_info before = zone_->zone->get_info(now.begin - seconds(1));
  const Local reached = local_at(now.begin, before.offset);  // what the clock would have shown without the change
  if (now.offset < before.offset) return std::max(local, reached);
  return time == now.begin ? reached : local;
}

}  // namespace hapax
