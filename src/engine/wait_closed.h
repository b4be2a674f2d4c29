// Calls that wait for an execution to close.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/timer.h"
#include "store/store.h"

namespace hapax {

// Reads run on the `reader`'s thread, not on the caller's, which may be the server's only one; except for closed_now().
// One read serves all calls that arrived in the meantime.
class ResultDesk {
 public:
  ResultDesk(Store& store, Timer& timer, Timer& reader) : store_(store), timer_(timer), reader_(reader) {}

  // A moment. What the caller read after it and found open need not be read again unless it has closed since.
  using Mark = std::uint64_t;
  Mark mark() const;

  std::shared_ptr<Waiting> wait(const std::string& name_space, const ExecutionId& id, Duration wait,
                                Reply<std::optional<Execution>> reply, std::optional<Mark> found_open_since = {});

  // A run that this engine has created since that mark. It stays the current run of its workflow id until it is closed
  // or the id is released: until then no one has to look it up.
  void created_run(const Execution& run, Mark before);
  void forget_runs();
  struct OpenRun {
    ExecutionId id;
    Mark since;  // when it was not there yet
  };
  std::optional<OpenRun> open_run(const std::string& name_space, const std::string& workflow_id) const;

  // The execution was closed: answers the calls that wait for it. `known` is its content, if it need not be read, or
  // cannot be because closing it deleted it.
  void closed(const ExecutionId& id, std::optional<Execution> known = {});
  // The same, reading on the caller's own thread: for a lane that has nothing else to do, because waking another thread
  // takes longer.
  void closed_now(const ExecutionId& id);

  // Other processes may have closed anything: reads all that is waited for.
  void look_again();

  // Ends all waits with what is known now.
  void stop();

  std::int64_t waiting() const;

 private:
  struct Call;

  using Calls = std::vector<std::shared_ptr<Call>>;

  Calls note_closed(const ExecutionId& id);
  bool may_be_closed_since(Mark mark, const ExecutionId& id) const;  // with the lock held
  void look_soon(const std::shared_ptr<Call>& call);
  void look(const Calls& calls);
  void look(const std::string& name_space, std::span<const std::shared_ptr<Call>> calls);
  void end(const std::shared_ptr<Call>& call, Answer<std::optional<Execution>> answer);
  void end_wait(const std::shared_ptr<Call>& call);

  Store& store_;
  Timer& timer_;
  Timer& reader_;
  mutable std::mutex mutex_;
  std::atomic<bool> stopping_ = false;
  std::unordered_multimap<ExecutionId, std::shared_ptr<Call>> calls_;
  Calls to_look_;
  std::map<std::pair<std::string, std::string>, OpenRun> runs_;  // the last ones created, by namespace and workflow id
  Mark closings_ = 0;                                            // ever
  std::deque<ExecutionId> latest_;  // the last of them, or all since anything may have been closed
};

}  // namespace hapax
