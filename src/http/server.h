// The HTTP server: the engine's verbs as JSON over /v1. It knows only the Engine interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace hapax {

// An access token, for every namespace or for one.
struct AccessToken {
  std::string secret;
  std::optional<std::string> name_space;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 7373;  // 0: any free one
  std::size_t max_body_bytes = std::size_t{8} * 1024 * 1024;
  std::chrono::milliseconds read_timeout{10'000};   // from the first byte of a request to its last
  std::chrono::milliseconds write_timeout{30'000};  // for a client that takes nothing of its answer
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds store_timeout{10'000};  // for the store's answer; the store's own timeout should come first
  std::chrono::milliseconds drain_timeout{10'000};  // the longest that stop() waits for answers
  std::size_t max_connections = 10'000;  // beyond it, a few more connections get answers from open routes only
  std::size_t max_requests = 4096;       // in hand at a time; waiting ones do not count
  std::size_t max_request_bytes = std::size_t{256} << 20;  // of the bodies of those, and of those being read
  std::size_t max_unsent_bytes = std::size_t{256} << 20;   // of answers that their clients do not take
  std::size_t io_threads = 1;
  std::size_t read_threads = 2;     // for synchronous engine calls
  std::vector<AccessToken> tokens;  // none: no access control
  // The server's names, besides localhost and its addresses; "*": any. With tokens and no names: any too, because a
  // page in a browser that points its own name here has no token.
  std::vector<std::string> hosts;
};

class Server {
 public:
  // Calls stop() if it was not called.
  virtual ~Server() = default;

  // Where it listens, with the real port: "127.0.0.1:7373", "[::1]:7373".
  virtual std::string address() const = 0;
  virtual std::uint16_t port() const = 0;

  // Replaces those it was started with. Throws std::invalid_argument, and changes nothing then.
  virtual void change_access(const std::vector<AccessToken>& tokens, const std::vector<std::string>& hosts) = 0;

  // Stops accepting, ends long polls with empty answers, answers what was received, then closes the connections.
  // Requests without an answer at the end of the drain timeout get 503; then it waits for the engine calls in flight.
  // The engine must still run. Idempotent.
  virtual void stop() = 0;
};

// Listens when it returns. Throws std::system_error if it cannot, std::invalid_argument for bad options. The engine
// must outlive the server.
std::unique_ptr<Server> start_server(Engine& engine, ServerOptions options);

}  // namespace hapax
