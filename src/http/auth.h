// Access tokens and their namespaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "http/message.h"
#include "http/server.h"

namespace hapax::http {

class Auth {
 public:
  // Throws std::invalid_argument for an empty secret or a bad namespace.
  explicit Auth(const std::vector<AccessToken>& tokens);

  struct Admission {
    std::string name_space;  // of the request
    bool bound = false;      // the token opens no other namespace
  };

  // Throws RequestError: 401 Unauthorized, 403 Forbidden, 400 for a bad namespace.
  Admission admit(const Request& request) const;

 private:
  struct Known {
    Digest secret;  // hashed, so that comparing takes the same time for any length
    std::optional<std::string> name_space;
  };

  const Known* find(std::string_view secret) const;

  std::vector<Known> known_;
};

}  // namespace hapax::http
