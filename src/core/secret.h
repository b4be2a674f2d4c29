// Texts that may carry a secret, as they may be shown: in logs, errors, answers and the list of processes.
#pragma once

#include <string>
#include <string_view>

namespace hapax {

// The URL of a store, cache or server without its secrets: the password before the @ (of http:// everything there), and
// the values of parameters that hold one, such as password, sslpassword, token and secret keys. *** stands for each.
// Also for libpq's keyword strings.
std::string without_secrets(std::string_view url);

}  // namespace hapax
