#include "store/s3/client/s3_wire.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "store/s3/client/s3_exchange.h"

namespace hapax {

namespace {

constexpr int kLongestPollMs = 60'000;  // orders wake it

void initialise_curl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) throw std::runtime_error(curl_easy_strerror(initialised));
}

void count(RequestCounts& counts, S3Request::Verb verb) {
  switch (verb) {
    case S3Request::Verb::put: ++counts.put; break;
    case S3Request::Verb::get: ++counts.get; break;
    case S3Request::Verb::list: ++counts.list; break;
    case S3Request::Verb::remove: ++counts.remove; break;
  }
}

void count(RequestCounts& counts, S3Request::Verb verb, int status) {
  if (status == 0 || status >= 500 || status == 429) ++counts.failed;
  if (verb == S3Request::Verb::put && (status == 412 || status == 409 || status == 404)) ++counts.refused;
}

}  // namespace

class S3Wire::Loop {
 public:
  Loop(S3Address address, S3WireOptions options)
      : address_(std::move(address)), options_(std::move(options)), multi_(curl_multi_init()) {
    if (!multi_) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.in_flight));
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    idle_.clear();
    curl_multi_cleanup(multi_);
  }

  void interrupt() {
    interrupted_ = true;
    curl_multi_wakeup(multi_);
  }

  void add(S3Request request, Duration after, std::function<void(S3Answer)> done) {
    {
      const std::lock_guard lock(mutex_);
      arrived_.push_back({Monotonic{Monotonic::now().ms + after.count()}, {std::move(request), std::move(done)}});
    }
    curl_multi_wakeup(multi_);
  }

  const S3Address address_;
  const S3WireOptions options_;
  StoreClock clock_;

 private:
  struct Order {
    S3Request request;
    std::function<void(S3Answer)> done;
  };
  struct Arrived {
    Monotonic when;
    Order order;
  };
  struct Active {
    std::unique_ptr<S3Exchange> exchange;
    std::function<void(S3Answer)> done;
  };

  void run() {
    while (take_orders()) {
      if (interrupted_) {
        end_all();
        curl_multi_poll(multi_, nullptr, 0, kLongestPollMs, nullptr);
        continue;
      }
      start_waiting();
      int running = 0;
      curl_multi_perform(multi_, &running);
      bool ended = false;
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        end(message->easy_handle, message->data.result);
        ended = true;
      }
      // What ended made room, and may have ordered something.
      if (!ended) curl_multi_poll(multi_, nullptr, 0, poll_ms(), nullptr);
    }
    end_all();
  }

  bool take_orders() {
    std::vector<Arrived> arrived;
    {
      const std::lock_guard lock(mutex_);
      arrived.swap(arrived_);
      if (stopping_) {
        arrived.swap(arrived_);
        return false;
      }
    }
    const Monotonic now = Monotonic::now();
    for (Arrived& one : arrived) {
      if (one.when <= now) {
        waiting_.push_back(std::move(one.order));
      } else {
        later_.emplace(one.when, std::move(one.order));
      }
    }
    while (!later_.empty() && later_.begin()->first <= now) {
      waiting_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    return true;
  }

  int poll_ms() const {
    if (later_.empty()) return kLongestPollMs;
    return static_cast<int>(
        std::clamp<std::int64_t>(later_.begin()->first.ms - Monotonic::now().ms, 0, kLongestPollMs));
  }

  void start_waiting() {
    while (!waiting_.empty() && active_.size() < options_.in_flight) {
      Order order = std::move(waiting_.front());
      waiting_.pop_front();
      if (order.request.deadline <= std::chrono::steady_clock::now()) {
        order.done(unsent("its turn did not come in time"));
        continue;
      }
      auto exchange = idle_.empty() ? std::make_unique<S3Exchange>() : std::move(idle_.back());
      if (!idle_.empty()) idle_.pop_back();
      count(*options_.counts, order.request.verb);
      const Time machine = SystemClock().now();
      exchange->prepare(address_, options_, std::move(order.request),
                        clock_.now(Monotonic::now(), machine).value_or(machine));
      CURL* easy = exchange->easy();
      curl_multi_add_handle(multi_, easy);
      active_[easy] = {std::move(exchange), std::move(order.done)};
    }
  }

  void end(CURL* easy, CURLcode result) {
    curl_multi_remove_handle(multi_, easy);
    Active active = std::move(active_.at(easy));
    active_.erase(easy);
    const S3Request::Verb verb = active.exchange->request().verb;
    if (const auto date = active.exchange->date()) clock_.observe(*date, active.exchange->sent_at(), Monotonic::now());
    S3Answer answer = active.exchange->take(result);
    count(*options_.counts, verb, answer.status);
    idle_.push_back(std::move(active.exchange));
    active.done(std::move(answer));
  }

  static S3Answer unsent(std::string why) {
    S3Answer answer;
    answer.sent = false;
    answer.message = std::move(why);
    return answer;
  }

  void end_all() {
    S3Answer stopped = unsent("this program is ending");
    stopped.sent = true;
    const auto active = std::exchange(active_, {});
    for (const auto& [easy, one] : active) {
      curl_multi_remove_handle(multi_, easy);
      one.done(stopped);
    }
    stopped.sent = false;
    // An answered caller may send again at once: the next round handles that.
    const std::deque<Order> waiting = std::exchange(waiting_, {});
    const std::multimap<Monotonic, Order> later = std::exchange(later_, {});
    std::vector<Arrived> arrived;
    {
      const std::lock_guard lock(mutex_);
      arrived.swap(arrived_);
    }
    for (const Order& order : waiting) order.done(stopped);
    for (const auto& [when, order] : later) order.done(stopped);
    for (const Arrived& one : arrived) one.order.done(stopped);
  }

  CURLM* const multi_;
  std::mutex mutex_;
  std::vector<Arrived> arrived_;  // orders to the thread
  bool stopping_ = false;
  std::atomic<bool> interrupted_ = false;

  // The thread's own.
  std::deque<Order> waiting_;
  std::multimap<Monotonic, Order> later_;
  std::map<CURL*, Active> active_;
  std::vector<std::unique_ptr<S3Exchange>> idle_;
  std::thread thread_;
};

S3Wire::S3Wire(S3Address address, S3WireOptions options) {
  initialise_curl();
  loop_ = std::make_unique<Loop>(std::move(address), std::move(options));
}

S3Wire::~S3Wire() = default;

const S3Address& S3Wire::address() const { return loop_->address_; }
RequestCounts& S3Wire::counts() { return *loop_->options_.counts; }
StoreClock& S3Wire::clock() { return loop_->clock_; }

void S3Wire::interrupt() { loop_->interrupt(); }

void S3Wire::send(S3Request request, Duration after, std::function<void(S3Answer)> done) {
  loop_->add(std::move(request), after, std::move(done));
}

S3Answer S3Wire::ask(S3Request request) {
  std::vector<S3Request> one;
  one.push_back(std::move(request));
  return std::move(ask_all(std::move(one)).front());
}

std::vector<S3Answer> S3Wire::ask_all(std::vector<S3Request> requests) {
  std::vector<std::future<S3Answer>> coming;
  for (S3Request& request : requests) {
    const auto answer = std::make_shared<std::promise<S3Answer>>();
    coming.push_back(answer->get_future());
    send(std::move(request), Duration(0), [answer](S3Answer got) { answer->set_value(std::move(got)); });
  }
  std::vector<S3Answer> answers;
  for (std::future<S3Answer>& answer : coming) answers.push_back(answer.get());
  return answers;
}

}  // namespace hapax
