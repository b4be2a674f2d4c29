// From a URL to an engine: embedded over a store, or over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/engine.h"
#include "engine/local_engine.h"
#include "store/call_deadline.h"
#include "store/request_counts.h"
#include "store/store.h"

struct sqlite3;
struct pg_conn;

namespace hapax {

// A URL that this build does not know. what() says what to write instead.
class BadUrl : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct OpenStoreOptions {
  bool create = true;                                  // false: a store that does not exist is a Failure::misuse
  bool migrate = false;                                // upgrades an older schema; without, it is a Failure::misuse
  std::string cache_redis = {};                        // redis://HOST:PORT in front of it; empty: none
  const Clock* clock = nullptr;                        // for memory: and sqlite:, must outlive them; null: the system's
  Duration timeout = kStoreTimeout;                    // of every call; see store/store.h
  std::shared_ptr<RequestCounts> request_counts = {};  // counts the requests of s3:; empty: not counted
};

// Opens the store of a URL: memory:, sqlite:FILE, postgres://…, s3://…. Throws BadUrl, or Failure if the store cannot
// be opened.
std::unique_ptr<Store> open_store(const std::string& url, OpenStoreOptions options = {});

struct Opened {
  std::shared_ptr<Engine> engine;

  // Submits inside the caller's own transaction; empty where the store has none. See App::submit_in() and start_in().
  std::function<SubmitResult(sqlite3*, const std::string& name_space, SubmitRequest)> submit_in;
  std::function<SubmitResult(pg_conn*, const std::string& name_space, SubmitRequest)> submit_in_postgres;

  // Says that a worker of this process lives, as long as what is returned does: if the process dies, its leases are
  // given back at once. Empty where the store has no such thing.
  std::function<std::shared_ptr<void>(const std::string& worker)> hold_worker = {};

  bool is_remote = false;  // a server's
};

struct OpenEngineOptions {
  std::string token = {};  // for http://
  std::string name_space = "default";
  EngineOptions engine = {};    // for a store
  OpenStoreOptions store = {};  // likewise
};

// Opens a store's URL with its own engine, or http://host:port. Throws BadUrl or Failure.
Opened open_engine(const std::string& url, OpenEngineOptions options = {});

}  // namespace hapax
