// What all verbs over HTTP share: requests and answers as JSON, errors as Failures, repeating after lost answers.
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

  // Whether the server says that the thing does not exist, rather than that the path does not.
  bool not_found() const;

  // Throws the answered error unless the status is this one.
  void require(int wanted = 200) const;

  // Throws the Failure, InvalidField or RemoteRefusal that an error answer stands for.
  [[noreturn]] void throw_error() const;
};

enum class Repeat : std::uint8_t { no, yes };  // where the server recognises a repeated request

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

  // Reads an answer as JSON. Throws Failure if it is not JSON.
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

// Whether the server refused what the request contains, so that parts of it may be accepted alone.
bool is_about_content(const Failure& failure);

// Answers with the result of `compute`, or what it throws, on this thread.
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
