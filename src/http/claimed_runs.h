// The runs whose turns this server handed out and has not seen the end of: a commit then need not read them.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/engine.h"

namespace hapax::http {

// May be used from any thread. Keeps the latest ones; one that is forgotten is read again.
class ClaimedRuns {
 public:
  void keep(const Execution& claimed);

  // As it was claimed; null if it is not here, or was claimed again since.
  std::shared_ptr<const Execution> find(const LeaseToken& token) const;
  void forget(const LeaseToken& token);

 private:
  static constexpr std::size_t kMost = 5000;
  static constexpr std::int64_t kMostBytes = 16 * 1024;  // of one: a larger one is read again

  mutable std::mutex mutex_;
  std::unordered_map<ExecutionId, std::shared_ptr<const Execution>> runs_;
  std::deque<ExecutionId> oldest_;  // first; some may be gone
};

}  // namespace hapax::http
