// A bucket on a test's clock: its time, and the time at which an object was written, come from a clock that can be
// moved.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "store/s3/object_store.h"

namespace hapax {

// When each object was written, shared by all handles on one bucket.
struct WritingTimes {
  std::mutex mutex;
  std::map<std::string, Time> by_name;
};

// The clock must outlive it.
class ClockedObjects final : public ObjectStore {
 public:
  ClockedObjects(std::unique_ptr<ObjectStore> bucket, const Clock& clock, std::shared_ptr<WritingTimes> times)
      : bucket_(std::move(bucket)), clock_(clock), times_(std::move(times)) {}

  using ObjectStore::get;
  using ObjectStore::put;
  using ObjectStore::remove;
  Time now() override { return clock_.now(); }
  std::vector<std::optional<Object>> get(std::span<const std::string> names) override { return bucket_->get(names); }

  std::vector<PutOutcome> put(std::span<const Put> puts) override {
    const Time now = clock_.now();
    std::vector<PutOutcome> outcomes = bucket_->put(puts);
    const std::lock_guard lock(times_->mutex);
    for (std::size_t i = 0; i < puts.size(); ++i) {
      if (outcomes[i].written) times_->by_name[puts[i].name] = now;
    }
    return outcomes;
  }

  void remove(std::span<const std::string> names) override { bucket_->remove(names); }
  void interrupt() override { bucket_->interrupt(); }

  Listing list(const std::string& prefix, const std::string& after, std::int32_t limit) override {
    Listing listing = bucket_->list(prefix, after, limit);
    const std::lock_guard lock(times_->mutex);
    for (Listed& object : listing.objects) {
      const auto written = times_->by_name.find(object.name);
      object.modified_at = written == times_->by_name.end() ? clock_.now() : written->second;
    }
    return listing;
  }

 private:
  const std::unique_ptr<ObjectStore> bucket_;
  const Clock& clock_;
  const std::shared_ptr<WritingTimes> times_;
};

}  // namespace hapax
