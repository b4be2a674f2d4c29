#include "client/remote_claims.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "wire/write_request.h"

namespace hapax {

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kMostUnanswered = 64;
constexpr Duration kTimeToAskAgain{5000};  // a worker that ends waits for it

}  // namespace

class RemoteClaims::Claim : public Waiting, public std::enable_shared_from_this<Claim> {
 public:
  Claim(RemoteClaims& claims, ClaimCall call, Duration timeout, Reply<std::vector<Claimed>> reply)
      : claims_(claims), call_(std::move(call)), timeout_(timeout), reply_(std::move(reply)) {}

  void send() {
    HttpRequest request{.method = "POST", .path = "/v1/claims", .body = wire::write_claim_call(call_)};
    request.timeout = timeout_ + std::max(call_.wait, Duration(0));
    const int round = ++sent_;
    auto exchange = claims_.server_.start(std::move(request), Repeat::yes,
                                          [self = shared_from_this(), round](Answer<Exchanged> answer) mutable {
                                            self->answered(round, std::move(answer));
                                          });
    {
      std::lock_guard lock(mutex_);
      if (answered_ >= round) return;
      exchange_ = exchange;
      if (!is_cancelled_ || round > 1) return;
    }
    exchange->cancel();
  }

  void cancel() override {
    std::shared_ptr<HttpClient::Call> exchange;
    {
      std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      if (sent_ == 1) exchange = exchange_;
    }
    if (exchange) exchange->cancel();
  }

 private:
  void answered(int round, Answer<Exchanged> answer) {
    bool is_cancelled = false;
    {
      std::lock_guard lock(mutex_);
      answered_ = round;
      exchange_ = nullptr;  // which holds this
      is_cancelled = is_cancelled_;
    }
    std::optional<Exchanged> exchanged;
    std::exception_ptr lost;
    try {
      exchanged = std::move(answer).get();
    } catch (...) {
      lost = std::current_exception();
    }
    if (lost && is_cancelled && round == 1) return ask_what_was_handed_out();
    hapax::answer(reply_, [&]() -> std::vector<Claimed> {
      try {
        if (lost) std::rethrow_exception(lost);
        return claims_.read_(*exchanged);
      } catch (const Failure& failure) {
        claims_.keep_unanswered(call_);
        if (is_cancelled || failure.code() == Failure::Code::stopped) return {};
        throw;
      }
    });
  }

  // At most one more than that comes with the answer.
  void ask_what_was_handed_out() {
    call_.wait = Duration(0);
    call_.limit = 1;
    timeout_ = std::min(timeout_, kTimeToAskAgain);
    send();
  }

  RemoteClaims& claims_;
  ClaimCall call_;
  Duration timeout_;
  const Reply<std::vector<Claimed>> reply_;
  std::mutex mutex_;
  std::atomic<int> sent_ = 0;
  int answered_ = 0;  // the latest exchange that has ended
  bool is_cancelled_ = false;
  std::shared_ptr<HttpClient::Call> exchange_;
};

std::shared_ptr<Waiting> RemoteClaims::start(ClaimCall call, Duration timeout, Reply<std::vector<Claimed>> reply) {
  if (call.claim_id.empty()) {
    auto unanswered = take_unanswered(call.worker);
    call.claim_id = unanswered ? *std::move(unanswered) : ids_.next(SystemClock().now()).to_string();
  }
  auto claim = std::make_shared<Claim>(*this, std::move(call), timeout, std::move(reply));
  claim->send();
  return claim;
}

void RemoteClaims::keep_unanswered(const ClaimCall& call) {
  std::lock_guard lock(mutex_);
  unanswered_.push_back({call.worker, call.claim_id, Steady::now() + call.lease});
  if (unanswered_.size() > kMostUnanswered) unanswered_.pop_front();
}

std::optional<std::string> RemoteClaims::take_unanswered(const std::string& worker) {
  std::lock_guard lock(mutex_);
  std::erase_if(unanswered_, [now = Steady::now()](const Unanswered& each) { return each.until <= now; });
  const auto found = std::find_if(unanswered_.begin(), unanswered_.end(),
                                  [&](const Unanswered& each) { return each.worker == worker; });
  if (found == unanswered_.end()) return std::nullopt;
  std::string claim_id = std::move(found->claim_id);
  unanswered_.erase(found);
  return claim_id;
}

}  // namespace hapax
