// Settings on the command line: NAME=VALUE.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/field.h"
#include "core/json.h"

namespace hapax {

// A setting and the form of its value.
struct KnownSetting {
  enum class Form { text, number, boolean, list };

  std::string name;  // "retry.initial" is the member of "retry"
  Form form = Form::text;
};

// The JSON document `current` without what the file decides (`from_file`), changed by the arguments: NAME=VALUE sets,
// NAME= removes. Throws CommandError for a malformed argument or an unknown setting, with the nearest known one.
Json change_settings(const std::string& current, const std::vector<std::string>& from_file,
                     const std::vector<std::string>& words, const std::vector<KnownSetting>& known);

// The arguments as a patch: NAME=VALUE sets, NAME= is a null, which removes. Throws as change_settings() does.
Json settings_patch(const std::vector<std::string>& words, const std::vector<KnownSetting>& known);

// A value that the setting does not accept.
CommandError setting_error(const InvalidField& error);

// "retention=30d rate_limit=100/sec" of a settings document.
std::string settings_in_words(const std::string& document);

}  // namespace hapax
