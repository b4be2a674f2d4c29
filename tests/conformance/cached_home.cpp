#include "conformance/cached_home.h"

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "store/cache/cached_store.h"
#include "store/sqlite/sqlite_store.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

namespace hapax {

namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// What is to be stored in Redis is there when a submission returns: the next one may be answered from it.
class Settling final : public ForwardingStore {
 public:
  Settling(const std::shared_ptr<CachedStore>& cached, std::function<void()> before_submit)
      : ForwardingStore(cached), cached_(cached), before_submit_(std::move(before_submit)) {}

  std::vector<SubmitOutcome> submit(std::span<const Submission> submissions, WaitingClaims& waiters) override {
    before_submit_();
    auto outcomes = ForwardingStore::submit(submissions, waiters);
    if (!cached_->settle(20s)) throw std::runtime_error("Redis was not written to");
    return outcomes;
  }

 private:
  const std::shared_ptr<CachedStore> cached_;
  const std::function<void()> before_submit_;
};

class CachedHome final : public StoreHome {
 public:
  explicit CachedHome(bool unsteady) : unsteady_(unsteady) {
    static RedisServer server;
    redis_ = &server;
    if (!redis_->running()) redis_->start();
    redis_->flush();
  }

  std::unique_ptr<Store> open(const Clock& clock) override {
    SqliteOptions options;
    options.path = dir_.file("hapax.db");
    CacheOptions cache;
    cache.redis = redis_->address();
    cache.timeout = unsteady_ ? 50ms : 5s;
    cache.first_pause = cache.longest_pause = 1ms;
    const std::shared_ptr<CachedStore> cached = open_cached_store(open_sqlite_store(options, clock), cache);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!unsteady_ && !cached->connected()) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("Redis cannot be connected to");
      std::this_thread::yield();
    }
    return std::make_unique<Settling>(cached, [this] { disturb(); });
  }

  bool change_payloads(const std::string& from, const std::string& to) override {
    change_sqlite_payloads(dir_.file("hapax.db"), from, to);
    return true;
  }

 private:
  void disturb() {
    const std::lock_guard lock(mutex_);
    if (!unsteady_ || ++submits_ % 5 != 0) return;
    switch (submits_ / 5 % 3) {
      case 0: return redis_->start();
      case 1: return redis_->flush();
      case 2: return redis_->kill();
    }
  }

  const bool unsteady_;
  RedisServer* redis_ = nullptr;
  TempDir dir_ = TempDir::in_memory_if_possible();
  std::mutex mutex_;
  int submits_ = 0;
};

}  // namespace

std::unique_ptr<StoreHome> make_cached_home(bool unsteady) { return std::make_unique<CachedHome>(unsteady); }

}  // namespace hapax
