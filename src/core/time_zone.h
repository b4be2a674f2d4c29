// Time zones of the IANA database.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/time.h"

namespace hapax {

// One zone, by its name (Europe/Berlin). Cheap to copy. Its rules are those of the system's database when the process
// first asked for a zone; after 2037 the last rule continues without daylight saving.
class TimeZone {
 public:
  using Local = std::chrono::local_seconds;

  // Nothing if there is no such zone, or no database.
  static std::optional<TimeZone> find(const std::string& name);

  const std::string& name() const;

  // The instant of a local time: the first one if it occurs twice, the end of the gap if it never occurs. A later local
  // time never maps to an earlier instant.
  Time to_time(Local local) const;

  // The earliest local time that does not come before that instant. The inverse of to_time, except for gaps and
  // repetitions.
  Local first_from(std::chrono::sys_seconds time) const;

 private:
  struct Zone;
  explicit TimeZone(std::shared_ptr<const Zone> zone) : zone_(std::move(zone)) {}

  std::shared_ptr<const Zone> zone_;
};

}  // namespace hapax
