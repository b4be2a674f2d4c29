#include "client/http_client.h"

#include <curl/curl.h>

#include <algorithm>

#include "client/http_exchange.h"
#include "client/http_waits.h"
#include "store/call_deadline.h"

namespace hapax {

HttpClient::HttpClient(std::string base_url, std::vector<std::string> headers)
    : base_url_(std::move(base_url)), headers_(std::move(headers)) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(initialised);
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::send(HttpRequest request) {
  if (const int left_ms = CallDeadline::left_ms(); left_ms >= 0) {
    request.timeout = std::min(request.timeout, std::chrono::milliseconds(left_ms));
  }
  std::unique_ptr<HttpExchange> exchange;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      exchange = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!exchange) exchange = std::make_unique<HttpExchange>();
  exchange->prepare(base_url_, headers_, std::move(request));
  exchange->end_if(stopping_);
  CURLcode result;
  do result = curl_easy_perform(exchange->easy());
  while (exchange->may_repeat(result));

  Outcome outcome = exchange->take(result);
  if (const auto* failure = std::get_if<Failure>(&outcome)) throw *failure;
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(exchange));
  return std::get<HttpAnswer>(std::move(outcome));
}

std::shared_ptr<HttpClient::Call> HttpClient::start(HttpRequest request, std::function<void(Outcome)> done) {
  struct Refused : Call {
    void cancel() override {}
  };
  Waits* waits = nullptr;
  if (stopping_) {
    done(Failure(Failure::Code::stopped, "the client is closed"));
    return std::make_shared<Refused>();
  }
  {
    std::lock_guard lock(mutex_);
    if (!waits_) waits_ = std::make_unique<Waits>(base_url_, headers_);
    waits = waits_.get();
  }
  return waits->start(std::move(request), std::move(done));
}

void HttpClient::stop() {
  std::unique_ptr<Waits> ending;  // after the lock: what it answers may call here again
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(waits_);
  }
}

bool fits_in_header(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace hapax
