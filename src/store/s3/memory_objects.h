// A bucket in memory, for tests: it counts its requests, and a test can step in before or after each single one.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "store/s3/object_store.h"

namespace hapax {

struct ObjectRequest {
  enum class Verb : std::uint8_t { get, put, remove, list };

  Verb verb = Verb::get;
  std::string name;  // a LIST's prefix
};

// The clock must outlive it.
class MemoryObjects final : public ObjectStore {
 public:
  // May throw: `before`, the request was not made; `after`, it was, and its answer is lost. Called on the requester's
  // thread, from several at once.
  using Hook = std::function<void(const ObjectRequest&)>;

  explicit MemoryObjects(const Clock& clock) : clock_(clock) {}

  void on_requests(Hook before, Hook after);  // while no request is in flight

  // From now on, like some servers: all PUTs of a batch check their condition before any of them writes.
  void break_conditions_among_writers() { conditions_hold_ = false; }

  std::map<ObjectRequest::Verb, int> counts() const;  // of requests so far
  void reset_counts();
  std::vector<std::string> names(const std::string& prefix = "") const;

  using ObjectStore::get;
  using ObjectStore::put;
  using ObjectStore::remove;
  Time now() override { return clock_.now(); }
  std::vector<std::optional<Object>> get(std::span<const std::string> names) override;
  std::vector<PutOutcome> put(std::span<const Put> puts) override;
  void remove(std::span<const std::string> names) override;
  Listing list(const std::string& prefix, const std::string& after, std::int32_t limit) override;

 private:
  struct Stored {
    std::string body;
    Etag etag;
    Time modified_at;
  };

  template <class Answer>
  auto request(ObjectRequest::Verb verb, const std::string& name, Answer answer);
  bool condition_holds(const Put& put) const;
  PutOutcome write(const Put& put);

  const Clock& clock_;
  Hook before_, after_;
  mutable std::mutex mutex_;
  std::map<std::string, Stored> objects_;
  std::map<ObjectRequest::Verb, int> counts_;
  std::uint64_t versions_ = 0;
  bool conditions_hold_ = true;
};

}  // namespace hapax
