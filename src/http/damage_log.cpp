#include "http/damage_log.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>
#include <unordered_set>

namespace hapax::http {

void log_damage(const std::string& what) {
  constexpr std::size_t kMaxKnown = 10'000;
  constexpr std::chrono::hours kKnownFor{1};
  static std::mutex mutex;
  static std::unordered_set<std::string> known;
  static std::chrono::steady_clock::time_point since;
  {
    const std::lock_guard lock(mutex);
    const auto now = std::chrono::steady_clock::now();
    if (known.size() >= kMaxKnown || now - since >= kKnownFor) {
      known.clear();
      since = now;
    }
    if (!known.insert(what).second) return;
  }
  spdlog::critical("damaged: {}", what);
}

}  // namespace hapax::http
