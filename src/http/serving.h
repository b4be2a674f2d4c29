// A server over an engine, for tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/fake_engine.h"
#include "http/server.h"
#include "http/test_client.h"

namespace hapax::http {

inline ServerOptions quick() {
  ServerOptions options;
  options.port = 0;
  return options;
}

struct Serving {
  explicit Serving(const ServerOptions& options = quick()) : server(start_server(engine, options)) {}
  TestClient client() const { return TestClient(server->port()); }
  Received call(std::string_view method, std::string_view path, std::string_view body = "",
                std::string_view headers = "") {
    return client().call(method, path, body, headers);
  }

  // Reads /metrics until this line appears; the suite's time limit ends it otherwise.
  void await_metric(const std::string& line) {
    TestClient asking = client();
    while (asking.call("GET", "/metrics").body.find(line + "\n") == std::string::npos) {}
  }

  FakeEngine engine;
  std::unique_ptr<Server> server;
};

inline std::string error_of(const Received& received) {
  const Json body = parse_json(received.body);
  EXPECT_NE(body.find("message"), nullptr);
  return body.find("error") != nullptr ? body.find("error")->text : "";
}

}  // namespace hapax::http
