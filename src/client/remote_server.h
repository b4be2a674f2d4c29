// What all verbs over HTTP share: requests and answers as JSON, errors as Failures, what was lost sent again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/http_client.h"
#include "client/remote_engine.h"
#include "core/json.h"
#include "engine/reply.h"

namespace hapax {

struct Exchanged {
  int status = 0;
  Json body;  // null if there is none

  // Whether the server says that this is not there, rather than that the path is not.
  bool not_found() const;

  // Throws the error that was answered unless the status is this one.
  void require(int wanted = 200) const;

  // Throws what an error answer stands for: a Failure, or a RemoteRefusal.
  [[noreturn]] void throw_error() const;
};

enum class Repeat : std::uint8_t { no, yes };  // where the server recognises what it had before

class RemoteServer {
 public:
  // Throws Failure::misuse if a token or namespace cannot be part of a request.
  explicit RemoteServer(const RemoteOptions& options);

  Exchanged exchange(HttpRequest request, Repeat repeat = Repeat::yes);
  Exchanged get(const std::string& path) { return exchange({.method = "GET", .path = path}); }
  Exchanged post(const std::string& path, std::string body, Repeat repeat = Repeat::yes);
  // The same as exchange() without waiting; answers on the thread of HttpClient::start().
  std::shared_ptr<HttpClient::Call> start(HttpRequest request, Repeat repeat, Reply<Exchanged> reply);
  Exchanged put(const std::string& path, std::string body);
  Exchanged patch(const std::string& path, std::string body);

  // An answer read as JSON. Throws Failure if it is none.
  Exchanged parse(const HttpAnswer& answer) const;

  HttpClient& http() { return http_; }

 private:
  HttpClient http_;
};

// A query string of the members that are set.
class QueryText {
 public:
  QueryText& add(std::string_view name, const std::optional<std::string>& value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Throws Failure::corrupt unless every item was answered.
void require_count(std::size_t answered, std::size_t asked);

// Throws RemoteRefusal if no header can carry the request key.
void require_request_key(std::string_view key);

// Answers with what `compute` gives or throws, on this thread.
template <class T, class Compute>
void answer(const Reply<T>& reply, Compute compute) {
  std::optional<Answer<T>> answered;
  try {
    answered.emplace(compute());
  } catch (...) {
    answered.emplace(std::current_exception());
  }
  reply(*std::move(answered));
}

}  // namespace hapax
