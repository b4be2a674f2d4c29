#include "client/remote_server.h"

#include <fmt/format.h>

#include "core/field.h"
#include "wire/header.h"

namespace hapax {

namespace {

constexpr int kRepeats = 3;  // of an exchange whose answer was lost
constexpr int kNoContent = 204, kRequestTimeout = 408, kTooManyRequests = 429;

// It may be sent again, whoever says so: a proxy in front of the server, too.
bool did_nothing(int status) { return status == kRequestTimeout || status == kTooManyRequests; }

std::vector<std::string> headers_of(const RemoteOptions& options) {
  if (!fits_in_header(options.token) || !fits_in_header(options.name_space)) {
    throw Failure(Failure::Code::misuse, "a token or namespace must not have control characters");
  }
  std::vector<std::string> headers{"Hapax-Namespace: " + options.name_space};
  if (!options.token.empty()) headers.push_back("Authorization: Bearer " + options.token);
  return headers;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

}  // namespace

namespace {

// If the answer names the field at fault.
void throw_invalid_field(const Json& body, const std::string& word, const std::string& sentence) {
  using Place = InvalidField::Place;
  for (const auto& [member, place] : {std::pair("pointer", Place::body), std::pair("parameter", Place::parameter),
                                      std::pair("header", Place::header)}) {
    const Json* name = body.find(member);
    if (name && name->is(Json::Kind::string)) throw InvalidField::told(place, name->text, sentence, word);
  }
}

}  // namespace

bool Exchanged::not_found() const {
  const Json* code = body.find("error");
  return status == 404 && code && code->text != "RouteNotFound";
}

void Exchanged::require(int wanted) const {
  if (status != wanted) throw_error();
}

void Exchanged::throw_error() const {
  const Json* code = body.find("error");
  const Json* message = body.find("message");
  const std::string sentence = message ? message->text : fmt::format("the server answered with status {}", status);
  const std::string word = code ? code->text : "";
  if (word == "StoreUnavailable" || word == "Overloaded" || did_nothing(status))
    throw Failure(Failure::Code::unavailable, sentence);
  if (word == "ShuttingDown") throw Failure(Failure::Code::stopped, sentence);
  if (word == "StoreCorrupt") throw Failure(Failure::Code::corrupt, sentence);
  if (status >= 500) throw Failure(Failure::Code::outcome_unknown, sentence);
  if (status == 400) throw_invalid_field(body, word, sentence);
  throw RemoteRefusal(code ? word : "InvalidRequest", sentence);
}

RemoteServer::RemoteServer(const RemoteOptions& options) : http_(without_slash(options.url), headers_of(options)) {}

Exchanged RemoteServer::parse(const HttpAnswer& answer) const {
  if (answer.status == kNoContent) return {answer.status, {}};
  try {
    return {answer.status, parse_json(answer.body)};
  } catch (const InvalidJson&) {
    if (answer.status >= 500 || did_nothing(answer.status))
      Exchanged{answer.status, {}}.throw_error();  // a proxy's page
    throw Failure(Failure::Code::misuse,
                  fmt::format("{} answered with status {} and something that is not JSON: is it a "
                              "Hapax server?",
                              http_.base_url(), answer.status));
  }
}

Exchanged RemoteServer::exchange(HttpRequest request, Repeat repeat) {
  request.repeats = repeat == Repeat::yes ? kRepeats : 0;
  return parse(http_.send(std::move(request)));
}

Exchanged RemoteServer::post(const std::string& path, std::string body, Repeat repeat) {
  return exchange(HttpRequest{.method = "POST", .path = path, .body = std::move(body)}, repeat);
}

std::shared_ptr<HttpClient::Call> RemoteServer::start(HttpRequest request, Repeat repeat, Reply<Exchanged> reply) {
  request.repeats = repeat == Repeat::yes ? kRepeats : 0;
  return http_.start(std::move(request), [this, reply = std::move(reply)](HttpClient::Outcome outcome) {
    answer(reply, [&] {
      if (const auto* failure = std::get_if<Failure>(&outcome)) throw *failure;
      return parse(std::get<HttpAnswer>(outcome));
    });
  });
}

Exchanged RemoteServer::put(const std::string& path, std::string body) {
  return exchange(HttpRequest{.method = "PUT", .path = path, .body = std::move(body)});
}

Exchanged RemoteServer::patch(const std::string& path, std::string body) {
  return exchange(HttpRequest{.method = "PATCH", .path = path, .body = std::move(body)});
}

QueryText& QueryText::add(std::string_view name, const std::optional<std::string>& value) {
  if (value) text_ += fmt::format("{}{}={}", text_.empty() ? '?' : '&', name, wire::percent_encode(*value));
  return *this;
}

bool is_about_content(const Failure& failure) {
  if (dynamic_cast<const InvalidField*>(&failure)) return true;
  const auto* refusal = dynamic_cast<const RemoteRefusal*>(&failure);
  return refusal && refusal->word() == "PayloadTooLarge";
}

void require_count(std::size_t answered, std::size_t asked) {
  if (answered == asked) return;
  throw Failure(Failure::Code::corrupt, fmt::format("the server answered {} of {} items", answered, asked));
}

}  // namespace hapax
