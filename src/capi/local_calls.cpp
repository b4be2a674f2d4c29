#include "capi/local_calls.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "http/error.h"
#include "http/request_head.h"

namespace hapax::capi {

namespace {

constexpr std::size_t kParsedHere = std::size_t{64} * 1024;  // a longer body would hold up the calling thread
constexpr unsigned kVersion = 10;                            // of HTTP: needs no Host

ServerOptions service_options() {
  ServerOptions options;
  options.hosts = {"*"};
  return options;
}

}  // namespace

// One call that is being handled.
class LocalCalls::Call final : public http::Exchange, public std::enable_shared_from_this<Call> {
 public:
  Call(LocalCalls& owner, std::uint64_t token, Answered answered)
      : owner_(owner), token_(token), answered_(std::move(answered)), share_(owner.service_.load()) {}

  void run(Message message) {
    const http::Responder responder(shared_from_this());
    try {
      const http::Route& route = admit(std::move(message));
      http::Service& service = owner_.service_;
      const bool is_long = request_.body.size() > kParsedHere || !request_.content_encoding.empty();
      if (!is_long) return service.run(route, request_, responder);
      service.run_elsewhere(responder, [self = shared_from_this(), &service, &route, responder] {
        service.run(route, self->request_, responder);
      });
    } catch (...) {
      responder.answer(http::error_response(std::current_exception()));
    }
  }

  void answer(std::function<http::Response()> make) override {
    if (is_answered_.exchange(true)) return;
    share_.release();
    answered_([make = std::move(make), &metrics = owner_.service_.metrics(), route = route_, received = received_,
               preferences = preferences_, is_bodyless = is_bodyless_] {
      http::Response response;
      try {
        response = make();
      } catch (...) {
        response = http::error_response(std::current_exception());
      }
      if (response.status >= 400 && preferences.problem) response = http::as_problem(response);
      metrics.observe(route, response.status, std::chrono::steady_clock::now() - received);
      if (is_bodyless) response.body.clear();
      return response;
    });
    owner_.calls_.remove(token_, *this);
  }

  void wait(std::shared_ptr<Waiting> waiting) override {
    share_.release();
    {
      const std::lock_guard lock(mutex_);
      if (!is_cancelled_ && !is_answered_) {
        waiting_ = std::move(waiting);
        return;
      }
    }
    waiting->cancel();
  }

  bool take_bytes(std::size_t total) override { return share_.take_bytes(total); }

  void limit(std::chrono::milliseconds time, std::function<http::Response()> otherwise) override {
    const std::lock_guard lock(owner_.mutex_);
    if (!owner_.timer_) owner_.timer_.emplace();
    owner_.timer_->after(time, [call = weak_from_this(), otherwise = std::move(otherwise)] {
      if (const auto self = call.lock()) self->answer(otherwise);
    });
  }

  void cancel() {
    std::shared_ptr<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      waiting.swap(waiting_);
    }
    if (waiting) waiting->cancel();
  }

 private:
  const http::Route& admit(Message message) {
    header_.version(kVersion);
    header_.method_string(message.method);
    header_.target(message.target);
    for (const auto& [name, value] : message.headers) header_.insert(name, value);
    if (header_.find("Hapax-Namespace") == header_.end()) header_.insert("Hapax-Namespace", owner_.name_space_);
    is_bodyless_ = header_.method() == boost::beast::http::verb::head;
    preferences_ = http::read_preferences(header_);
    http::read_head(request_, header_, {});
    request_.body = std::move(message.body);
    const http::Route& route = owner_.service_.admit(request_, route_);
    if (!share_.take_bytes(request_.body.size())) throw http::too_many_bytes();
    return route;
  }

  LocalCalls& owner_;
  const std::uint64_t token_;
  const Answered answered_;
  const std::chrono::steady_clock::time_point received_ = std::chrono::steady_clock::now();
  http::RequestHeader header_;  // the request points into it
  http::Request request_;
  http::Preferences preferences_;
  http::Load::Share share_;
  std::size_t route_ = http::Metrics::kNoRoute;
  bool is_bodyless_ = false;
  std::atomic<bool> is_answered_ = false;
  std::mutex mutex_;
  std::shared_ptr<Waiting> waiting_;
  bool is_cancelled_ = false;
};

LocalCalls::LocalCalls(Engine& engine, std::string name_space)
    : name_space_(std::move(name_space)), service_(engine, service_options()) {}

LocalCalls::~LocalCalls() { stop(); }

void LocalCalls::start(std::uint64_t token, Message message, Answered answered) {
  const auto call = std::make_shared<Call>(*this, token, std::move(answered));
  calls_.add(token, call);
  call->run(std::move(message));
}

void LocalCalls::cancel(std::uint64_t token) {
  for (const auto& call : calls_.with_token(token)) call->cancel();
}

void LocalCalls::stop() {
  for (const auto& call : calls_.all()) call->cancel();
  service_.stop();
}

}  // namespace hapax::capi
