#include "client/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/secret.h"

namespace hapax {

namespace {

// Less than the 75 seconds after which a server closes an idle connection.
constexpr long kMaxIdleSeconds = 60;
constexpr long kConnectTimeoutMs = 5000;

}  // namespace

HttpExchange::HttpExchange() : easy_(curl_easy_init()) {
  if (!easy_) throw std::bad_alloc();
}

HttpExchange::~HttpExchange() { curl_easy_cleanup(easy_); }

void HttpExchange::prepare(const std::string& base_url, const std::vector<std::string>& always, HttpRequest request) {
  base_url_ = &base_url;
  request_ = std::move(request);
  answer_.clear();
  error_[0] = '\0';
  deadline_ = std::chrono::steady_clock::now() + request_.timeout;
  may_have_arrived_ = false;
  curl_slist* list = nullptr;
  for (const auto* headers : {&always, &std::as_const(request_.headers)}) {
    for (const std::string& header : *headers) list = curl_slist_append(list, header.c_str());
  }
  list = curl_slist_append(list, "Expect:");  // no round trip before a large body
  if (request_.method != "GET" && !request_.content_type.empty()) {
    list = curl_slist_append(list, fmt::format("Content-Type: {}", request_.content_type).c_str());
  }
  headers_.reset(list);

  curl_easy_reset(easy_);
  curl_easy_setopt(easy_, CURLOPT_URL, (base_url + request_.path).c_str());
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);  // a queue may be named ".."
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  set_timeout(request_.timeout);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, append_answer);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  if (request_.method != "GET") set_body();
}

void HttpExchange::end_if(const std::atomic<bool>& stopping) {
  const auto is_set = [](void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t) -> int {
    return *static_cast<const std::atomic<bool>*>(flag) ? 1 : 0;
  };
  curl_easy_setopt(easy_, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy_, CURLOPT_XFERINFOFUNCTION, +is_set);
  curl_easy_setopt(easy_, CURLOPT_XFERINFODATA, &stopping);
}

// For curl, no time at all means no limit.
void HttpExchange::set_timeout(std::chrono::milliseconds timeout) {
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(1, timeout.count())));
}

// On a kept connection that breaks before the answer arrives, curl sends the request again by itself. A request that
// must not be sent twice is therefore read from a function that cannot start over.
void HttpExchange::set_body() {
  if (request_.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
    return;
  }
  if (request_.method != "POST") {
    curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    if (request_.body.empty()) return;
  }
  curl_easy_setopt(easy_, CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  if (request_.repeats > 0 || request_.body.empty()) {
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.data());
  } else {
    unsent_ = request_.body;
    curl_easy_setopt(easy_, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  }
}

std::size_t HttpExchange::read_body(char* data, std::size_t size, std::size_t count, void* exchange) {
  std::string_view& unsent = static_cast<HttpExchange*>(exchange)->unsent_;
  const std::size_t length = std::min(size * count, unsent.size());
  std::memcpy(data, unsent.data(), length);
  unsent.remove_prefix(length);
  return length;
}

std::size_t HttpExchange::append_answer(char* data, std::size_t size, std::size_t count, void* exchange) {
  static_cast<HttpExchange*>(exchange)->answer_.append(data, size * count);
  return size * count;
}

bool HttpExchange::never_sent(CURLcode result) const {
  if (result == CURLE_SEND_FAIL_REWIND) return false;
  long sent_bytes = 0;
  curl_easy_getinfo(easy_, CURLINFO_REQUEST_SIZE, &sent_bytes);
  return sent_bytes == 0;
}

bool HttpExchange::may_repeat(CURLcode result) {
  if (result == CURLE_OK || result == CURLE_ABORTED_BY_CALLBACK || request_.repeats == 0 || never_sent(result))
    return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  set_timeout(left);
  --request_.repeats;
  may_have_arrived_ = true;
  answer_.clear();
  error_[0] = '\0';
  return true;
}

HttpClient::Outcome HttpExchange::take(CURLcode result) {
  if (result == CURLE_ABORTED_BY_CALLBACK) return Failure(Failure::Code::stopped, "the client is closed");
  if (result != CURLE_OK) {
    const std::string why = error_[0] ? error_ : curl_easy_strerror(result);
    const bool did_nothing = never_sent(result) && !may_have_arrived_;
    return Failure(did_nothing ? Failure::Code::unavailable : Failure::Code::outcome_unknown,
                   fmt::format("{} does not answer: {}", without_secrets(*base_url_), why));
  }
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  HttpAnswer answer{static_cast<int>(status), std::move(answer_)};
  if (!request_.wants_headers) return answer;
  for (curl_header* header = nullptr; (header = curl_easy_nextheader(easy_, CURLH_HEADER, -1, header)) != nullptr;) {
    answer.headers.emplace_back(header->name, header->value);
  }
  return answer;
}

}  // namespace hapax
