// How processes that share a bucket learn of changes: a small object, pulse.json, that is rewritten after changes, at
// most once per interval, and read by those who listen. No writer waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "store/s3/object_store.h"

namespace hapax::s3 {

class Pulse {
 public:
  // `is_same_store` is called, on the pulse's thread, before a pulse of another store is overwritten or announced.
  Pulse(std::shared_ptr<ObjectStore> objects, std::chrono::milliseconds interval, std::function<bool()> is_same_store);
  ~Pulse();  // announces what was not announced yet
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  void carry(std::string identity);  // of the store; from the next beat on
  void changed();
  void listen(std::function<void()> on_change);  // empty: no more; none is running on return

 private:
  std::string content();
  bool is_ours(const std::optional<Object>& pulse);
  void start();
  void loop();
  void beat();
  bool look();

  const std::shared_ptr<ObjectStore> objects_;
  const std::chrono::milliseconds interval_;
  const std::function<bool()> is_same_store_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, changed_ = false, working_ = false;
  std::function<void()> on_change_;
  std::string identity_;
  std::optional<Etag> seen_;
  std::chrono::steady_clock::time_point told_at_{};
  std::thread thread_;  // once there is something to do
};

}  // namespace hapax::s3
