#include "capi/remote_calls.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>
#include <utility>

#include "core/field.h"
#include "engine/check_request.h"

namespace hapax::capi {

namespace {

constexpr std::size_t kMaxConnections = 128;  // besides those of long polls
constexpr std::chrono::milliseconds kAnswerTime{30'000};

bool same_header(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

bool has_header(const Message& message, std::string_view wanted) {
  return std::any_of(message.headers.begin(), message.headers.end(),
                     [&](const auto& header) { return same_header(header.first, wanted); });
}

// It may hold its connection for as long as a server waits.
bool is_long_poll(std::string_view target) {
  return target == "/v1/claims" || target.find("wait=") != std::string_view::npos;
}

std::string base_of(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Failure cancelled() { return {Failure::Code::stopped, "the call was cancelled"}; }

http::Response describe(const Failure& failure) {
  switch (failure.code()) {
    case Failure::Code::stopped: return no_answer("Cancelled", "The call was cancelled.", true);
    case Failure::Code::unavailable: return no_answer("StoreUnavailable", failure.what(), true);
    default: return no_answer("OutcomeUnknown", failure.what(), true);
  }
}

// The headers that a program has a use for, as a call in this process has them.
http::Response describe(HttpAnswer answer) {
  http::Response response = http::json_response(answer.status, std::move(answer.body));
  response.content_type = {};
  for (auto& [name, value] : answer.headers) {
    for (const std::string_view wanted :
         {"Content-Type", "Location", "Idempotency-Replayed", "Retry-After", "Allow", "WWW-Authenticate"}) {
      if (same_header(name, wanted)) response.headers.emplace_back(wanted, std::move(value));
    }
  }
  return response;
}

}  // namespace

struct RemoteCalls::Call {
  std::uint64_t token;
  HttpRequest request;
  Answered answered;
  bool is_long_poll;

  // Under the mutex of the owner.
  bool is_cancelled = false;
  bool has_ended = false;
  std::shared_ptr<HttpClient::Call> exchange = nullptr;
};

RemoteCalls::RemoteCalls(std::string url, std::string token, std::string name_space)
    : token_(std::move(token)), name_space_(std::move(name_space)), http_(base_of(std::move(url)), {}) {}

HttpRequest RemoteCalls::request_of(Message message) const {
  HttpRequest request{.method = message.method, .path = message.target, .body = std::move(message.body)};
  if (has_header(message, "Content-Type")) request.content_type = {};
  if (!has_header(message, "Hapax-Namespace")) message.headers.emplace_back("Hapax-Namespace", name_space_);
  if (!token_.empty() && !has_header(message, "Authorization")) {
    message.headers.emplace_back("Authorization", "Bearer " + token_);
  }
  const bool fits = fits_in_header(request.method) && fits_in_header(request.path);
  if (!fits) throw InvalidField(InvalidField::Place::parameter, "target", "must not have control characters");
  for (const auto& [name, value] : message.headers) {
    const bool is_name = !name.empty() && fits_in_header(name) && name.find_first_of(": ") == std::string::npos;
    if (!is_name || !fits_in_header(value)) {
      throw InvalidField(InvalidField::Place::header, name, "must not have control characters");
    }
    request.headers.push_back(value.empty() ? name + ";" : name + ": " + value);  // curl's way to say an empty one
  }
  request.timeout =
      kAnswerTime + (is_long_poll(request.path) ? std::chrono::milliseconds(kMaxWait) : std::chrono::milliseconds(0));
  request.wants_headers = true;
  return request;
}

void RemoteCalls::start(std::uint64_t token, Message message, Answered answered) {
  const bool waits = is_long_poll(message.target);
  auto call = std::make_shared<Call>(Call{token, request_of(std::move(message)), std::move(answered), waits});
  pending_.add(token, call);
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopped_ && !waits && sent_ >= kMaxConnections) {
      in_line_.push_back(std::move(call));
      return;
    }
    if (!waits) ++sent_;
  }
  send(call);
}

void RemoteCalls::send(const std::shared_ptr<Call>& call) {
  bool is_cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled = call->is_cancelled || is_stopped_;
  }
  if (is_cancelled) return ended(call, cancelled());
  auto exchange = http_.start(std::move(call->request),
                              [this, call](HttpClient::Outcome outcome) { ended(call, std::move(outcome)); });
  {
    const std::lock_guard lock(mutex_);
    if (!call->has_ended) call->exchange = exchange;
    is_cancelled = call->is_cancelled;
  }
  if (is_cancelled) exchange->cancel();
}

void RemoteCalls::ended(const std::shared_ptr<Call>& call, HttpClient::Outcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    call->has_ended = true;
    call->exchange.reset();
    if (!call->is_long_poll) --sent_;
  }
  if (const auto next = next_in_line()) send(next);
  call->answered([outcome = std::move(outcome)]() mutable {
    return std::visit([](auto& each) { return describe(std::move(each)); }, outcome);
  });
  pending_.remove(call->token, *call);
}

std::shared_ptr<RemoteCalls::Call> RemoteCalls::next_in_line() {
  const std::lock_guard lock(mutex_);
  if (in_line_.empty() || is_stopped_ || sent_ >= kMaxConnections) return nullptr;
  auto next = std::move(in_line_.front());
  in_line_.pop_front();
  ++sent_;
  return next;
}

void RemoteCalls::cancel(const std::shared_ptr<Call>& call) {
  std::shared_ptr<HttpClient::Call> exchange;
  {
    const std::lock_guard lock(mutex_);
    call->is_cancelled = true;
    exchange = call->exchange;
  }
  if (exchange) exchange->cancel();
}

void RemoteCalls::cancel(std::uint64_t token) {
  for (const auto& call : pending_.with_token(token)) {
    if (call->is_long_poll) cancel(call);
  }
}

void RemoteCalls::stop() {
  std::deque<std::shared_ptr<Call>> unsent;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    unsent.swap(in_line_);
    sent_ += unsent.size();
  }
  for (const auto& call : unsent) ended(call, cancelled());
  for (const auto& call : pending_.all()) cancel(call);
}

}  // namespace hapax::capi
