// For tests of the library: a URL of each kind, with what must live behind it.
#pragma once

#include <memory>
#include <string>

#include "engine/local_engine.h"
#include "http/server.h"
#include "open/open_engine.h"
#include "support/temp_dir.h"

namespace hapax {

class Place {
 public:
  // `memory`, `sqlite` or `http`; the port is for the last one, 0: any.
  explicit Place(const std::string& kind, std::uint16_t port = 0) {
    if (kind == "http") {
      engine_ = start_engine(open_store("memory:"), {});
      ServerOptions options;
      options.port = port;
      server_ = start_server(*engine_, options);
      url_ = "http://127.0.0.1:" + std::to_string(server_->port());
    } else {
      url_ = kind == "memory" ? "memory:" : "sqlite:" + (dir_.path() / "app.db").string();
    }
  }

  const std::string& url() const { return url_; }
  std::uint16_t port() const { return server_->port(); }

 private:
  TempDir dir_;
  std::unique_ptr<LocalEngine> engine_;
  std::unique_ptr<Server> server_;
  std::string url_;
};

}  // namespace hapax
