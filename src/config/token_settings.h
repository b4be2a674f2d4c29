// [tokens.NAME]: an access token and where its secret comes from.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/json.h"

namespace hapax {

using Environment = std::map<std::string, std::string>;

struct TokenSettings {
  std::string name;  // its name in messages
  std::string token;
  std::optional<std::string> name_space;  // absent: any, by the Hapax-Namespace header

  bool operator==(const TokenSettings&) const = default;
};

// Reads the table at that place of the configuration. The secret is there, or in a variable, or in a file, without its
// last newline. Throws InvalidField, which never contains the secret.
TokenSettings read_token(const std::string& name, const Json& table, const std::string& at,
                         const Environment& environment);

// The key of the table that says where the secret comes from.
std::string token_key(const Json& table);

}  // namespace hapax
