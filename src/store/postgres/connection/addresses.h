// The addresses behind a host name: libpq tries them in turn only as each of them fails, and waits for the first that
// is silent.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hapax::postgres {

// The addresses of a host name in the order in which to try them; none where it cannot be resolved.
using Resolve = std::function<std::vector<std::string>(const std::string& name)>;
std::vector<std::string> addresses_of(const std::string& name);

// A host's keyword string, once for each address of its name. The name stays: certificates and passwords are found by
// it. Unchanged where it names no host, a socket or an address, or where libpq is to say why the name cannot be
// resolved.
std::vector<std::string> by_address(const std::string& host, const Resolve& resolve);

}  // namespace hapax::postgres
