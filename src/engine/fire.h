// Fires schedules. Every server does this beside the others, without a leader: the server that moves an activity's
// position (only one can, by its revision) has decided what becomes of the due firings, and carries that out under a
// short lease. If it dies, another server carries out the same decision: each part happens only once, by its name.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/activity_record.h"
#include "engine/run_starter.h"
#include "engine/timer.h"

namespace hapax {

class Schedules {
 public:
  // Runs on a timer of its own thread. Nothing is fired unless `fires` says so; absent: always.
  Schedules(RunStarter& starter, Timer& timer, const std::function<bool()>& fires)
      : starter_(starter), timer_(timer), fires_(fires) {}

  void start();

  // Fires what is due now, on any thread, as another server would.
  void look();

  // An activity may have something to do then.
  void due_by(Time time);

  std::int64_t failures() const { return failures_; }

 private:
  struct Decided {
    ActivityRecord record;
    std::optional<Time> next_due;  // once it is carried out
  };

  std::vector<Decided> decide(const std::vector<ActivityRow>& rows);
  std::optional<Decided> plan(const ActivityRow& row, Time now);
  void carry_out(std::vector<Decided>& decided);
  std::string open_run(const ActivityRecord& record);
  void schedule(std::optional<Time> next_due);

  RunStarter& starter_;
  Timer& timer_;
  const std::function<bool()>& fires_;
  std::mutex mutex_;
  std::optional<Timer::Key> next_look_;
  std::atomic<std::int64_t> failures_ = 0;
};

}  // namespace hapax
