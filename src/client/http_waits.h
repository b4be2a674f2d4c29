// The thread of the requests that wait at the server.
#pragma once

#include <curl/curl.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/http_client.h"
#include "client/http_exchange.h"

namespace hapax {

class HttpClient::Waits {
 public:
  Waits(const std::string& base_url, const std::vector<std::string>& headers);
  ~Waits();

  std::shared_ptr<Call> start(HttpRequest request, std::function<void(Outcome)> done);

 private:
  struct Waiting;

  void wake();
  void run();
  bool take_orders();
  void drive();
  void ended(CURL* easy, CURLcode result);
  void end(CURL* easy, Outcome outcome);

  const std::string& base_url_;
  const std::vector<std::string>& headers_;
  CURLM* const multi_;

  // Orders to the thread.
  std::mutex mutex_;
  std::vector<std::pair<HttpRequest, std::shared_ptr<Waiting>>> started_;
  std::vector<std::shared_ptr<Waiting>> cancelled_;
  bool stopping_ = false;

  // Used by the thread only.
  struct Active {
    std::unique_ptr<HttpExchange> exchange;
    std::shared_ptr<Waiting> waiting;
  };
  std::map<CURL*, Active> active_;
  std::vector<std::unique_ptr<HttpExchange>> idle_;
  std::thread thread_;
};

}  // namespace hapax
