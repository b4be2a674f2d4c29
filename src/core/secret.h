// Hides secrets in texts that are shown: in logs, errors, answers and the list of processes.
#pragma once

#include <string>
#include <string_view>

namespace hapax {

// The URL of a store, cache or server without its secrets: the password before the @ (for http:// everything there),
// and the values of parameters such as password, sslpassword, token and secret keys. *** replaces each. Also for
// libpq's keyword strings.
std::string without_secrets(std::string_view url);

}  // namespace hapax
