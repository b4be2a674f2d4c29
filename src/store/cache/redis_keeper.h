// Talks to Redis for the cache: quick lookups, background writes, back-off after errors.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/cache/cached_identity.h"
#include "store/cache/cached_store.h"
#include "store/cache/redis_link.h"

namespace hapax {

class RedisKeeper {
 public:
  // What is to be stored for an identity, asked for on the keeper's thread; nothing if there is nothing (any more).
  struct Storable {
    std::string text;
    Duration expires_in;
  };
  using Fetch = std::function<std::optional<Storable>(const IdentityHash&)>;

  using KeyOf = std::function<std::string(const IdentityHash&)>;

  RedisKeeper(const CacheOptions& options, KeyOf key_of, Fetch fetch);
  ~RedisKeeper();

  // One text per identity, if there is one. None while Redis is unavailable or another thread is asking: the caller
  // never waits for more than one timeout.
  std::optional<std::vector<std::optional<std::string>>> look_up(std::span<const IdentityHash> hashes);

  // Has these stored soon, or not at all if there is too much to store.
  void store_soon(std::span<const IdentityHash> hashes);

  bool connected() const { return connected_; }
  bool settle(Duration wait);
  std::int64_t stored() const { return stored_; }
  std::int64_t refused() const { return refused_; }
  std::int64_t troubles() const { return troubles_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  void run();
  void connect(std::unique_lock<std::mutex>& lock);
  void store_some(std::unique_lock<std::mutex>& lock);
  void trouble(const std::string& why);
  void log(const std::string& message) const;

  const CacheOptions options_;
  const KeyOf key_of_;
  const Fetch fetch_;

  std::mutex look_up_mutex_;                 // taken before mutex_
  std::unique_ptr<RedisLink> look_up_link_;  // guarded by look_up_mutex_
  std::unique_ptr<RedisLink> store_link_;    // the keeper's own

  std::mutex mutex_;
  std::condition_variable woken_, settled_;
  std::set<IdentityHash> wanted_;
  bool storing_ = false;
  bool stopping_ = false;
  Duration pause_;
  Instant try_at_ = Instant::min();

  std::atomic<bool> connected_ = false;
  std::atomic<std::int64_t> stored_ = 0, refused_ = 0, troubles_ = 0;
  std::thread thread_;
};

}  // namespace hapax
