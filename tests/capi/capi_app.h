// What the tests of the C ABI share: an open app with a queue, and answers as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "hapax/capi.h"

namespace hapax::capi_testing {

struct Answer {
  std::uint64_t token = 0;
  std::int32_t kind = 0;
  int status = 0;
  std::string headers, body;
  hapax_worker* worker = nullptr;

  Json json() const { return parse_json(body); }
  std::string text(const std::string& pointer) const;  // the string at that place in the body; empty if there is none
  std::string error() const { return text("/error"); }
};

// Closed at the end, unless that was done before.
class CapiApp {
 public:
  explicit CapiApp(const std::string& url = "memory:", const char* options = nullptr);
  ~CapiApp();
  CapiApp(const CapiApp&) = delete;
  CapiApp& operator=(const CapiApp&) = delete;

  hapax_app* get() const { return app_; }
  hapax_queue* queue() const { return queue_; }

  void call(std::uint64_t token, const std::string& method, const std::string& target, const std::string& body = {},
            const char* headers = nullptr);
  Answer call_wait(const std::string& method, const std::string& target, const std::string& body = {},
                   const char* headers = nullptr, std::int64_t timeout_ms = -1);

  // The next completion; fails the test if none arrives for a long time.
  Answer next();
  // All that are there now.
  std::vector<Answer> drain();

 private:
  hapax_app* app_ = nullptr;
  hapax_queue* queue_ = nullptr;
};

// Copies and releases.
Answer take(hapax_completion& completion);

// Whether the descriptor of a queue becomes readable within that time.
bool is_readable(int descriptor, int timeout_ms);

}  // namespace hapax::capi_testing
