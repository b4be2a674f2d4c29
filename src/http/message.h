// A request and its answer as plain values, as handlers see them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/reply.h"

namespace hapax::http {

// HEAD is a GET whose answer is sent without its body.
enum class Method : std::uint8_t { get, post, put, patch, del, options, other };

// It arrives in two parts: everything but the body at the end of the head, then the body. The views are valid only
// during the handler's call; copy what is needed later.
struct Request {
  Method method = Method::other;
  std::string_view path;   // as sent, still percent-encoded
  std::string_view query;  // without the question mark
  std::string body;

  // Headers, trimmed; a null view is an absent one.
  std::string_view content_type;
  std::string_view host;  // from the Host header, or from the target if it names one
  std::string_view authorization;
  std::string_view name_space_header;
  std::string_view key_header;        // Idempotency-Key, as sent
  std::string_view content_encoding;  // of the body, until it is decoded before the handler
  std::string_view webhook_origin;    // WebHook-Request-Origin: a sender of events asks for permission
  bool has_origin = false;            // from a page in a browser
  std::vector<std::pair<std::string_view, std::string_view>>
      event_headers;  // those that begin with ce-, without that prefix

  // Filled on the way to the handler.
  std::vector<std::string> params;             // of the path pattern, decoded, in order
  std::optional<std::string> idempotency_key;  // of routes that take one
  std::string allow;                           // for OPTIONS: the methods of the path
  std::string name_space;
  bool bound = false;  // to that namespace, by its token
};

inline constexpr std::string_view kJsonType = "application/json";

inline constexpr std::string_view kProblemType = "application/problem+json";

inline constexpr int kNoContent = 204;  // has no body

struct Response {
  int status = 200;
  std::string body;
  std::string_view content_type = kJsonType;  // of static storage
  std::vector<std::pair<std::string_view, std::string>> headers;
  bool encoded = false;  // the body is encoded as the headers say
  bool close = false;    // the connection ends with this answer
};

inline Response json_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

// Where the answer to one request goes. All from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Once. `make` runs on the connection's thread; what it throws becomes an error answer.
  virtual void answer(std::function<Response()> make) = 0;

  // From now on the request waits for something to happen and does not count in the server's load. The wait is
  // cancelled if the client hangs up or the server stops.
  virtual void wait(std::shared_ptr<Waiting> waiting) = 0;

  // Before the answer: the request holds this many bytes in all. False if that is more than the server accepts.
  virtual bool take_bytes(std::size_t total) = 0;

  // Before the answer: if it does not arrive within this time, `otherwise` makes another one.
  virtual void limit(std::chrono::milliseconds time, std::function<Response()> otherwise) = 0;
};

// A handler's handle on the answer it owes. Copies refer to the same answer.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void answer(Response response) const {
    exchange_->answer([response = std::move(response)]() mutable { return std::move(response); });
  }

  void wait(std::shared_ptr<Waiting> waiting) const { exchange_->wait(std::move(waiting)); }

  bool take_bytes(std::size_t total) const { return exchange_->take_bytes(total); }

  void limit(std::chrono::milliseconds time, std::function<Response()> otherwise) const {
    exchange_->limit(time, std::move(otherwise));
  }

  // A reply for the engine: `write` makes the response from the value, on the connection's thread, not on the engine's.
  template <class T, class Write>
  Reply<T> reply(Write write) const {
    return [responder = *this, write = std::move(write)](Answer<T> answer) {
      responder.exchange_->answer(
          [answer = std::move(answer), write]() mutable { return write(std::move(answer).get()); });
    };
  }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace hapax::http
