// The workflow of an activity that starts a list of tasks. The engine runs its turns itself: the first asks for all the
// tasks, in one commit, under their deterministic names; the last, when all are closed, says how they ended. Any server
// takes any turn. So it does for activities that send a signal: see event_signal.h.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "engine/known_settings.h"
#include "engine/timer.h"

namespace hapax {

class TaskLists {
 public:
  // Turns run on the timer's thread.
  TaskLists(Engine& engine, const KnownSettings& settings, Timer& timer)
      : engine_(engine), settings_(settings), timer_(timer) {}

  // Starts waiting for turns in every namespace that has the queue of task lists, unless it already does.
  void look();
  void stop();

 private:
  void claim(const std::string& name_space);
  void claimed(const std::string& name_space, Answer<std::vector<Claimed>> answer);
  void run_turns(const std::string& name_space, const std::vector<Claimed>& claims);

  Engine& engine_;
  const KnownSettings& settings_;
  Timer& timer_;
  std::mutex mutex_;
  bool stopping_ = false;
  std::map<std::string, std::shared_ptr<Waiting>> waiting_;  // by namespace
};

// The turn that follows from the history of such a run: all of its events, oldest first.
TurnRequest task_list_turn(const Execution& run, const std::vector<Event>& history);

}  // namespace hapax
