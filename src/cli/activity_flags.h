// The definition of an activity on the command line: a file, or flags for common cases.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "core/activity.h"

namespace hapax {

// Must live as long as the command it was added to.
class ActivityFlags {
 public:
  void add(CLI::App& command);

  // The definition from the flags. Reads the file; "-" is program.in. Throws CommandError that names the flag or the
  // place in the file.
  ActivitySettings settings(const Program& program) const;

 private:
  std::string document(const Program& program) const;
  void check_exclusions() const;

  std::optional<std::string> file_, name_, workflow_, signal_, signal_to_, input_, queue_;
  std::optional<std::string> cron_, timezone_, misfire_policy_, misfire_grace_, overlap_, jitter_;
  std::optional<std::string> event_type_, event_source_, event_subject_, dedupe_by_, dedupe_key_strategy_;
  std::optional<std::int64_t> catchup_limit_;
  bool disabled_ = false;
};

}  // namespace hapax
