#include "store/cache/redis_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax {

namespace {

constexpr std::size_t kMostWanted = 10'000;
constexpr RedisLink::Timeout kConnectTimeout = std::chrono::seconds(1);
constexpr RedisLink::Timeout kStoreTimeout = std::chrono::seconds(1);

}  // namespace

RedisKeeper::RedisKeeper(const CacheOptions& options, KeyOf key_of, Fetch fetch)
    : options_(options),
      key_of_(std::move(key_of)),
      fetch_(std::move(fetch)),
      pause_(options.first_pause),
      thread_([this] { run(); }) {}

RedisKeeper::~RedisKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

std::optional<std::vector<std::optional<std::string>>> RedisKeeper::look_up(std::span<const IdentityHash> hashes) {
  if (!connected_) return std::nullopt;
  const std::unique_lock asking(look_up_mutex_, std::try_to_lock);
  if (!asking || !look_up_link_) return std::nullopt;
  std::vector<std::string> keys;
  keys.reserve(hashes.size());
  for (const IdentityHash& hash : hashes) keys.push_back(key_of_(hash));
  try {
    auto texts = look_up_link_->get(keys, options_.timeout);
    const std::lock_guard lock(mutex_);
    pause_ = options_.first_pause;
    return texts;
  } catch (const RedisTrouble& why) {
    look_up_link_.reset();
    const std::lock_guard lock(mutex_);
    trouble(why.what());
    return std::nullopt;
  }
}

void RedisKeeper::store_soon(std::span<const IdentityHash> hashes) {
  if (!connected_ || hashes.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (wanted_.size() + hashes.size() > kMostWanted) return;
    wanted_.insert(hashes.begin(), hashes.end());
  }
  woken_.notify_one();
}

bool RedisKeeper::settle(Duration wait) {
  std::unique_lock lock(mutex_);
  return settled_.wait_for(lock, wait, [&] { return wanted_.empty() && !storing_; });
}

void RedisKeeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!connected_) {
      if (std::chrono::steady_clock::now() < try_at_) {
        woken_.wait_until(lock, try_at_, [&] { return stopping_; });
      } else {
        connect(lock);
      }
    } else if (!wanted_.empty()) {
      store_some(lock);
    } else {
      woken_.wait(lock, [&] { return stopping_ || !connected_ || !wanted_.empty(); });
    }
  }
}

void RedisKeeper::connect(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::unique_ptr<RedisLink> look_up, store;
  std::string why;
  try {
    look_up = std::make_unique<RedisLink>(options_.redis, kConnectTimeout);
    store = std::make_unique<RedisLink>(options_.redis, kConnectTimeout);
  } catch (const RedisTrouble& trouble) {
    why = trouble.what();
  }
  if (store) {
    const std::lock_guard asking(look_up_mutex_);
    look_up_link_ = std::move(look_up);
    store_link_ = std::move(store);
    lock.lock();
    connected_ = true;
    log(fmt::format("the cache at {} is in use", options_.redis.name()));
    return;
  }
  lock.lock();
  trouble(why);
}

void RedisKeeper::store_some(std::unique_lock<std::mutex>& lock) {
  std::set<IdentityHash> now;
  now.swap(wanted_);
  storing_ = true;
  lock.unlock();
  std::string why;
  try {
    for (const IdentityHash& hash : now) {
      const std::string key = key_of_(hash);  // before it is read: never what was, under the key of what is
      const auto storable = fetch_(hash);
      if (!storable) continue;
      const bool taken = store_link_->set(key, storable->text, storable->expires_in, kStoreTimeout);
      ++(taken ? stored_ : refused_);
    }
  } catch (const RedisTrouble& trouble) {
    why = trouble.what();
  }
  lock.lock();
  storing_ = false;
  if (!why.empty()) trouble(why);
  settled_.notify_all();
}

// The caller has mutex_.
void RedisKeeper::trouble(const std::string& why) {
  ++troubles_;
  connected_ = false;
  wanted_.clear();
  try_at_ = std::chrono::steady_clock::now() + pause_;
  log(fmt::format("the cache at {} is not used: {}; the store is asked alone, and Redis again in {}",
                  options_.redis.name(), why, format_duration(pause_)));
  pause_ = std::min(pause_ * 2, options_.longest_pause);
  settled_.notify_all();
  woken_.notify_one();
}

void RedisKeeper::log(const std::string& message) const {
  if (options_.log) options_.log(message);
}

}  // namespace hapax
