// The query string of a request, read by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"

namespace hapax::http {

// Ask for every parameter of the route, then call done(), which refuses all others. Throws RequestError; also for more
// parameters than any route has.
class Query {
 public:
  explicit Query(std::string_view text);

  std::optional<std::string> string(std::string_view name);  // not empty
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<Duration> duration(std::string_view name, Duration high);
  std::string required(std::string_view name, std::optional<std::string> value) const;
  void done() const;

 private:
  struct Parameter {
    std::string name, value;
    bool asked = false;
  };
  std::vector<Parameter> parameters_;
};

}  // namespace hapax::http
