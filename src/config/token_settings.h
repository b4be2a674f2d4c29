// [tokens.NAME]: a secret that opens the server, and where it comes from.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/json.h"

namespace hapax {

using Environment = std::map<std::string, std::string>;

struct TokenSettings {
  std::string name;  // how messages call it
  std::string token;
  std::optional<std::string> name_space;  // absent: any, by the Hapax-Namespace header

  bool operator==(const TokenSettings&) const = default;
};

// The table at that place of the configuration. The secret stands there, or in a variable, or in a file, without its
// last line end. Throws InvalidField, which never tells the secret.
TokenSettings read_token(const std::string& name, const Json& table, const std::string& at,
                         const Environment& environment);

// The key of the table that says where the secret comes from.
std::string token_key(const Json& table);

}  // namespace hapax
