// One request and its answer, on a curl handle.
#pragma once

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/s3/client/s3_wire.h"

namespace hapax {

class S3Exchange {
 public:
  S3Exchange();
  ~S3Exchange();
  S3Exchange(const S3Exchange&) = delete;
  S3Exchange& operator=(const S3Exchange&) = delete;

  // Makes the handle ready to be run. `address` must outlive it.
  void prepare(const S3Address& address, const S3WireOptions& options, S3Request request, Time now);

  CURL* easy() const { return easy_; }
  const S3Request& request() const { return request_; }
  Monotonic sent_at() const { return sent_at_; }
  std::optional<Time> date() const { return date_; }  // of the answer

  // After curl has ended it.
  S3Answer take(CURLcode result);

 private:
  void set_method();
  static std::size_t read_body(char* data, std::size_t size, std::size_t count, void* exchange);
  static std::size_t append_body(char* data, std::size_t size, std::size_t count, void* exchange);
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* exchange);

  CURL* const easy_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_{nullptr, curl_slist_free_all};
  S3Request request_;
  std::string_view unsent_;  // of the body
  Monotonic sent_at_;
  S3Answer answer_;
  std::optional<Time> date_;
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace hapax
