// Load over HTTP: many keep-alive connections driven by one thread, at the lowest client cost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hapax::bench {

// Sends `requests` POSTs to the path, one at a time on each connection. `body` gives the body for each number. Every
// answer must have the status. Requests per second.
double post_load(std::uint16_t port, const std::string& path, std::int64_t requests, int connections, int status,
                 const std::function<std::string(std::int64_t)>& body);

}  // namespace hapax::bench
