// Calls that wait for an execution to close.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/timer.h"
#include "store/store.h"

namespace hapax {

// Reads run on the `reader`'s thread, not on the caller's, which may be the server's only one; but for closed_now().
class ResultDesk {
 public:
  ResultDesk(Store& store, Timer& timer, Timer& reader) : store_(store), timer_(timer), reader_(reader) {}

  std::shared_ptr<Waiting> wait(const std::string& name_space, const ExecutionId& id, Duration wait,
                                Reply<std::optional<Execution>> reply);

  // The execution was closed: answers whoever waits for it. `purged` is what it was if closing it deleted it.
  void closed(const ExecutionId& id, std::optional<Execution> purged = {});
  // The same with the read on the caller's own thread: for a lane that has nothing else to do, as waking another takes longer.
  void closed_now(const ExecutionId& id);

  // Anything may have been closed by somebody else: looks at all that is waited for.
  void look_again();

  // Ends all waits with what is known now.
  void stop();

  std::int64_t waiting() const;

 private:
  struct Call;

  std::vector<std::shared_ptr<Call>> calls_for(const ExecutionId& id) const;
  void look(const std::shared_ptr<Call>& call);
  void end(const std::shared_ptr<Call>& call, Answer<std::optional<Execution>> answer);
  void end_wait(const std::shared_ptr<Call>& call);

  Store& store_;
  Timer& timer_;
  Timer& reader_;
  mutable std::mutex mutex_;
  std::atomic<bool> stopping_ = false;
  std::unordered_multimap<ExecutionId, std::shared_ptr<Call>> calls_;
};

}  // namespace hapax
