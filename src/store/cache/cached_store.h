// A store with Redis in front: Redis answers duplicates of completed tasks.
//
// The store stays the truth. An answer from Redis is given only after the store's ledger has named the owner of the
// identity now, and it is the owner that Redis has: a completed execution never changes, so the rest cannot be out of
// date. A Redis that is gone, slow, full, flushed or wrong makes this slower, never wrong. docs/adr/0007-redis-cache.md
// says why.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/cache/redis_url.h"
#include "store/forwarding_store.h"

namespace hapax {

struct CacheOptions {
  RedisAddress redis;
  Duration timeout{10};       // of one lookup in Redis, with a submission waiting
  Duration first_pause{100};  // after trouble, before Redis is tried again; each time twice as long
  Duration longest_pause{10'000};
  std::function<void(const std::string&)> log = {};  // Redis came or went; on any thread
};

struct CacheCounters {
  std::int64_t hits = 0;     // answered from Redis
  std::int64_t misses = 0;   // looked for and not there
  std::int64_t refuted = 0;  // there, but the ledger named another owner, or its time was over
  std::int64_t garbage = 0;  // there, but nothing that this program wrote
  std::int64_t stored = 0;
  std::int64_t refused = 0;   // by Redis, which may be full
  std::int64_t troubles = 0;  // connections lost, timed out or refused
};

class CachedStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  virtual CacheCounters counters() const = 0;
  // Whether Redis is in use right now.
  virtual bool connected() const = 0;
  // Waits until what was to be stored is in Redis or given up; false if that takes longer.
  virtual bool settle(Duration wait) = 0;
};

// Never throws because of Redis: it is connected to, and connected to again, in the background.
std::unique_ptr<CachedStore> open_cached_store(std::shared_ptr<Store> store, CacheOptions options);

}  // namespace hapax
