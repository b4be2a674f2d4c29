// What else a verb of a store changed, for those who wait for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/id.h"
#include "core/time.h"

namespace hapax {

// An execution that was closed, purged with it if its retention is nothing; or one that is claimable again.
struct Changed {
  ExecutionId id;
  std::string name_space;
  std::string queue;
  Kind kind = Kind::task;
  std::string type = {};  // empty: the store has not read it

  bool operator==(const Changed&) const = default;
};

// What else a verb changed, for those who wait. Queues may be named more than once.
struct Effects {
  std::vector<Changed> closed;
  std::vector<Changed> ready;    // claimable, now or at a time to come; what was handed out is not
  std::optional<Time> next_due;  // sweeping has something to do then

  bool operator==(const Effects&) const = default;

  bool empty() const { return closed.empty() && ready.empty() && !next_due; }
  void add(const Effects& more);
  void add_changed(const Execution& changed);  // closed, or claimable again
};

inline void Effects::add_changed(const Execution& changed) {
  (is_closed(changed.status) ? closed : ready)
      .push_back({changed.id, changed.name_space, changed.queue, changed.kind, changed.type});
}

inline void Effects::add(const Effects& more) {
  closed.insert(closed.end(), more.closed.begin(), more.closed.end());
  ready.insert(ready.end(), more.ready.begin(), more.ready.end());
  if (more.next_due && (!next_due || *more.next_due < *next_due)) next_due = more.next_due;
}

}  // namespace hapax
