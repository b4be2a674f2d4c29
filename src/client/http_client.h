// HTTP exchanges over kept connections, on libcurl. May be shared between threads.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/failure.h"

namespace hapax {

struct HttpRequest {
  std::string method;
  std::string path;  // and query, percent-encoded
  std::string body = {};
  std::string_view content_type = "application/json";  // of the body; of static storage; empty: the headers have it
  std::vector<std::string> headers = {};               // "Name: value"
  std::chrono::milliseconds timeout{30'000};           // of all its tries together
  // How often to send it again after a lost answer: 0 unless the server recognises a repeated request.
  int repeats = 0;
  bool wants_headers = false;  // of the answer
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // if they were wanted
};

class HttpClient {
 public:
  // Every request carries `headers`.
  HttpClient(std::string base_url, std::vector<std::string> headers);

  // Cancels the requests in flight, as HttpCall::cancel() does.
  ~HttpClient();

  // Blocks until the answer arrives, at most until the deadline of this thread's call. A request that was never sent or
  // never answered throws Failure: unavailable if it cannot have reached the server, outcome_unknown if it may have.
  HttpAnswer send(HttpRequest request);

  // A request that waits at the server. All of them share one thread. `done` is called once, on that thread, with the
  // answer or what send() would have thrown; with Failure::stopped if it was cancelled. `done` must not block.
  class Call {
   public:
    virtual ~Call() = default;
    // Ends the exchange at once, whatever the server does, unless it has ended.
    virtual void cancel() = 0;
  };
  using Outcome = std::variant<HttpAnswer, Failure>;
  std::shared_ptr<Call> start(HttpRequest request, std::function<void(Outcome)> done);

  // Ends every exchange within a second, with Failure::stopped.
  void stop();

  const std::string& base_url() const { return base_url_; }

 private:
  class Waits;

  const std::string base_url_;
  const std::vector<std::string> headers_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<class HttpExchange>> idle_;
  std::unique_ptr<Waits> waits_;  // from the first one on
  std::atomic<bool> stopping_ = false;
};

// Whether a header can carry the text: no control characters.
bool fits_in_header(std::string_view text);

}  // namespace hapax
