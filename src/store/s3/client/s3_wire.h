// Requests to a bucket and their answers: signed, many in flight on connections that are kept. Nothing is sent twice
// here, and no answer is judged; that is S3Objects' business.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/request_counts.h"
#include "store/s3/client/s3_url.h"
#include "store/s3/client/store_clock.h"

namespace hapax {

struct S3Request {
  enum class Verb : std::uint8_t { put, get, list, remove };

  Verb verb = Verb::get;
  std::string key = {};  // in the bucket, prefix and all; empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query = {};
  std::vector<std::string> headers = {};  // "If-Match: …"
  std::string body = {};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();  // of its answer
};

struct S3Answer {
  int status = 0;          // 0: none came, `message` says why
  bool sent = true;        // false: the request never reached the bucket
  bool untrusted = false;  // the server's certificate is not to be trusted
  std::string body;
  std::string etag;           // without quotation marks
  std::string region;         // where the bucket says it is
  std::string code, message;  // of an error

  bool ok() const { return status >= 200 && status < 300; }
};

struct S3WireOptions {
  std::size_t in_flight = 64;  // more wait their turn
  Duration connect_timeout{2'000};
  Duration timeout{10'000};  // for a request and its answer
  std::shared_ptr<RequestCounts> counts = std::make_shared<RequestCounts>();
};

class S3Wire {
 public:
  explicit S3Wire(S3Address address, S3WireOptions options = {});
  ~S3Wire();  // what is still in flight is answered with status 0
  S3Wire(const S3Wire&) = delete;
  S3Wire& operator=(const S3Wire&) = delete;

  const S3Address& address() const;
  RequestCounts& counts();
  StoreClock& clock();

  // Sends it after this delay. `done` is called once, on the wire's own thread, and must not block.
  void send(S3Request request, Duration after, std::function<void(S3Answer)> done);

  // Answers requests in flight, and all later ones, with status 0.
  void interrupt();

  // Waits for the answer; for those of all of them, sent at once.
  S3Answer ask(S3Request request);
  std::vector<S3Answer> ask_all(std::vector<S3Request> requests);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace hapax
