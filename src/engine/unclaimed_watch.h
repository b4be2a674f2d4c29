// Says, in one log line, that nobody claims a type that was submitted here.
//
// Of each type in a queue one execution is watched, the first that was submitted when none was. A minute later, and
// every minute from then on as long as it is pending, the store is asked why it does not run.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/timer.h"
#include "store/store.h"

namespace hapax {

class UnclaimedWatch {
 public:
  static constexpr Duration kLookEvery{60'000};
  static constexpr std::size_t kMostWatched = 1000, kMostLooks = 100;  // of all types; at once

  UnclaimedWatch(Store& store, Timer& timer) : store_(store), timer_(timer) {}

  // On the path of submissions: costs a look into a map.
  void submitted(const Execution& created);

  // Looks at those whose time has come, as the timer does.
  void look();

 private:
  using Key = std::tuple<std::string, std::string, std::string, Kind>;  // namespace, queue, type
  struct Watched {
    ExecutionId id;
    Time look_at;
    bool told = false;
  };

  std::vector<std::pair<Key, Watched>> due(Time now);
  // Whether it is still to be watched.
  bool look_at(const Key& key, Watched& watched);
  void schedule();

  Store& store_;
  Timer& timer_;
  std::mutex mutex_;
  std::map<Key, Watched> watched_;
  bool scheduled_ = false;
};

}  // namespace hapax
