// The ways in: the engine over a store, the engine over HTTP, HTTP itself, the library on both, and the command line.
// Each refuses a bad request; what it says of it is a Fault, so that they can be compared.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "client/http_client.h"
#include "core/field.h"
#include "engine/local_engine.h"
#include "hapax/app.h"
#include "http/server.h"

namespace hapax::doors {

// Why a request was refused. The place is a JSON Pointer, or "parameter NAME", or "header NAME".
struct Fault {
  std::string code;
  std::string place;

  bool operator==(const Fault&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << fault.code << " at '" << fault.place << "'";
}

inline const Fault kAccepted{"accepted", ""};

inline Fault invalid(std::string place) { return {"InvalidRequest", std::move(place)}; }

// What the call throws: InvalidField of an engine, Error of the library.
Fault fault_of(const std::function<void()>& call);

struct Answer {
  int status = 0;
  Json body;
};

class Doors : public testing::Test {
 protected:
  Answer send(const std::string& method, const std::string& path, const std::string& body = "",
              const std::vector<std::string>& headers = {});
  // What the server says of it.
  Fault over_http(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::vector<std::string>& headers = {});

  // The exit code and what it says on standard error.
  std::pair<int, std::string> on_command_line(std::vector<std::string> arguments);

  const std::string space_ = "default";
  const std::unique_ptr<LocalEngine> local_;
  const std::unique_ptr<LocalEngine> served_;
  const std::unique_ptr<Server> server_;
  const std::string url_;
  const std::unique_ptr<Engine> remote_;
  HttpClient http_;
  App embedded_;
  App far_;

  Doors();
};

}  // namespace hapax::doors
