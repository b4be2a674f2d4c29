// The configuration as one JSON document, and the origin of each value: the file's line, a variable, a flag. So one
// reader of settings (core/settings.h) serves both the file and the API.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace hapax {

// A configuration that cannot be used. what() is one line: where, which key, what is wrong, what to do.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ConfigDocument {
  Json root;
  std::map<std::string, std::string, std::less<>>
      origins;  // by JSON pointer: "hapax.toml:7", "HAPAX_LISTEN", "--listen"

  // Sets /section/key, replacing what is there.
  void set(std::string_view section, std::string_view key, Json value, std::string origin);

  // The origin of the value at the pointer; if it is absent, that of the nearest table around it.
  std::string origin(std::string_view pointer) const;

  // "hapax.toml:7: [queues.payments] retention: " and the message.
  ConfigError error(std::string_view pointer, std::string_view message) const;
};

Json json_object();
Json json_string(std::string text);

// Throws ConfigError for a text that is not TOML. `file` is how messages name it.
ConfigDocument parse_toml(std::string_view text, const std::string& file);

}  // namespace hapax
