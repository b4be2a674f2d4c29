// One request and its answer, on a curl handle that keeps its connection for the next one.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/http_client.h"

namespace hapax {

class HttpExchange {
 public:
  HttpExchange();
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // The parts of the exchange. `base_url` and `always` must outlive it.
  void prepare(const std::string& base_url, const std::vector<std::string>& always, HttpRequest request);

  // Lets the exchange end as soon as the flag is set. The flag must outlive it.
  void end_if(const std::atomic<bool>& stopping);

  CURL* easy() const { return easy_; }

  // After curl has finished: whether to send it again, because the answer was lost and repeating is safe. All of it
  // together takes no longer than the timeout of the request.
  bool may_repeat(CURLcode result);

  // The answer, or the failure.
  HttpClient::Outcome take(CURLcode result);

 private:
  void set_body();
  void set_timeout(std::chrono::milliseconds timeout);
  bool never_sent(CURLcode result) const;
  static std::size_t read_body(char* data, std::size_t size, std::size_t count, void* exchange);
  static std::size_t append_answer(char* data, std::size_t size, std::size_t count, void* exchange);

  CURL* const easy_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_{nullptr, curl_slist_free_all};
  const std::string* base_url_ = nullptr;
  HttpRequest request_;
  std::string_view unsent_;  // position in the body, where curl may not send it twice
  std::string answer_;
  std::chrono::steady_clock::time_point deadline_;
  bool may_have_arrived_ = false;  // by an earlier try
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace hapax
