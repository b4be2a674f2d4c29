// Settings on the command line: NAME=VALUE.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "core/field.h"
#include "core/json.h"

namespace hapax {

// A setting and the form its value has.
struct KnownSetting {
  enum class Form { text, number, boolean, list };

  std::string name;  // "retry.initial" is the member of "retry"
  Form form = Form::text;
};

// The JSON document `current` without what the file decides (`from_file`), changed by the words: NAME=VALUE sets, NAME=
// takes back. Throws CommandError for a word that is none or names an unknown setting, with the one that was meant.
Json change_settings(const std::string& current, const std::vector<std::string>& from_file,
                     const std::vector<std::string>& words, const std::vector<KnownSetting>& known);

// The words as a patch: NAME=VALUE sets, NAME= is a null, which takes it back. Throws as change_settings() does.
Json settings_patch(const std::vector<std::string>& words, const std::vector<KnownSetting>& known);

// A value that the setting does not take.
CommandError setting_error(const InvalidField& error);

// "retention=30d rate_limit=100/sec" of a settings document.
std::string settings_in_words(const std::string& document);

}  // namespace hapax
