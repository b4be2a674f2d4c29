#include "client/http_waits.h"

#include <algorithm>

namespace hapax {

namespace {

constexpr int kPollMs = 60'000;  // orders wake it

Failure cancelled_request() { return {Failure::Code::stopped, "the request was cancelled"}; }

}  // namespace

struct HttpClient::Waits::Waiting : Call, std::enable_shared_from_this<Waiting> {
  Waiting(Waits* w, std::function<void(Outcome)> d) : waits(w), done(std::move(d)) {}

  void cancel() override {
    std::lock_guard lock(mutex);
    if (waits == nullptr) return;
    std::lock_guard orders(waits->mutex_);
    waits->cancelled_.push_back(shared_from_this());
    waits->wake();
  }

  std::mutex mutex;
  Waits* waits;          // null once it has ended
  CURL* easy = nullptr;  // used by the thread only
  const std::function<void(Outcome)> done;
};

HttpClient::Waits::Waits(const std::string& base_url, const std::vector<std::string>& headers)
    : base_url_(base_url), headers_(headers), multi_(curl_multi_init()), thread_([this] { run(); }) {}

HttpClient::Waits::~Waits() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  thread_.join();
  idle_.clear();
  curl_multi_cleanup(multi_);
}

void HttpClient::Waits::wake() { curl_multi_wakeup(multi_); }

std::shared_ptr<HttpClient::Call> HttpClient::Waits::start(HttpRequest request, std::function<void(Outcome)> done) {
  auto waiting = std::make_shared<Waiting>(this, std::move(done));
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      started_.emplace_back(std::move(request), waiting);
      wake();
      return waiting;
    }
    waiting->waits = nullptr;
  }
  waiting->done(cancelled_request());
  return waiting;
}

void HttpClient::Waits::run() {
  while (take_orders()) {
    drive();
    curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
}

// False when the thread should end: then everything is cancelled.
bool HttpClient::Waits::take_orders() {
  decltype(started_) started;
  decltype(cancelled_) cancelled;
  bool stopping = false;
  {
    std::lock_guard lock(mutex_);
    started.swap(started_);
    cancelled.swap(cancelled_);
    stopping = stopping_;
  }
  for (auto& [request, waiting] : started) {
    auto exchange = idle_.empty() ? std::make_unique<HttpExchange>() : std::move(idle_.back());
    if (!idle_.empty()) idle_.pop_back();
    exchange->prepare(base_url_, headers_, std::move(request));
    waiting->easy = exchange->easy();
    curl_multi_add_handle(multi_, waiting->easy);
    active_[waiting->easy] = {std::move(exchange), waiting};
  }
  for (const auto& waiting : cancelled) {
    const auto found = active_.find(waiting->easy);
    if (found != active_.end() && found->second.waiting == waiting) end(waiting->easy, cancelled_request());
  }
  while (stopping && !active_.empty()) end(active_.begin()->first, cancelled_request());
  return !stopping;
}

void HttpClient::Waits::drive() {
  int running = 0;
  curl_multi_perform(multi_, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) ended(message->easy_handle, message->data.result);
  }
}

void HttpClient::Waits::ended(CURL* easy, CURLcode result) {
  HttpExchange& exchange = *active_.at(easy).exchange;
  if (exchange.may_repeat(result)) {
    curl_multi_remove_handle(multi_, easy);
    curl_multi_add_handle(multi_, easy);
    return wake();
  }
  end(easy, exchange.take(result));
}

// Removing a handle in the middle of its exchange closes the connection, so the server stops waiting.
void HttpClient::Waits::end(CURL* easy, Outcome outcome) {
  curl_multi_remove_handle(multi_, easy);
  Active active = std::move(active_.at(easy));
  active_.erase(easy);
  idle_.push_back(std::move(active.exchange));
  {
    std::lock_guard lock(active.waiting->mutex);
    active.waiting->waits = nullptr;
  }
  active.waiting->done(std::move(outcome));
}

}  // namespace hapax
