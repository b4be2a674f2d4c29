// A server over a store in memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/local_engine.h"
#include "http/server.h"
#include "open/open_engine.h"

namespace hapax::capi_testing {

class RemotePlace {
 public:
  // It asks for the token, if it is told one.
  explicit RemotePlace(const std::string& token = {}) {
    options_.port = 0;
    if (!token.empty()) options_.tokens.push_back({token, std::nullopt});
    server_ = start_server(*opened_.engine, options_);
    options_.port = server_->port();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(options_.port); }

  void stop() { server_.reset(); }

  // Away while `meanwhile` runs.
  template <class Meanwhile>
  void restart(Meanwhile meanwhile) {
    stop();
    meanwhile();
    server_ = start_server(*opened_.engine, options_);
  }

 private:
  Opened opened_ = open_engine("memory:");
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

}  // namespace hapax::capi_testing
