// Updates: delivered once per request key, and answered by the code of the workflow. See core/update.h.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/timer.h"

namespace hapax {

// The calls that wait for the code's answer. Reads run on the reader's thread.
class UpdateDesk {
 public:
  using Control = std::function<void(ControlRequest, Reply<ControlOutcome>)>;

  UpdateDesk(Store& store, Timer& reader, Control control)
      : store_(store), reader_(reader), control_(std::move(control)) {}

  std::shared_ptr<Waiting> update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply);

  // The run has answered something, or was closed.
  void may_be_answered(const ExecutionId& run);
  // Other processes may have committed anything.
  void look_again();

  // Ends all waits with what is known now.
  void stop();

 private:
  struct Call;
  using Calls = std::vector<std::shared_ptr<Call>>;

  void delivered(const std::shared_ptr<Call>& call, Answer<ControlOutcome> answer);
  void look_soon(const std::shared_ptr<Call>& call);
  void look(const std::shared_ptr<Call>& call);
  bool find_answer(Call& call, UpdateOutcome& outcome);
  void end(const std::shared_ptr<Call>& call, Answer<UpdateOutcome> answer);

  Store& store_;
  Timer& reader_;
  const Control control_;
  std::mutex mutex_;
  std::unordered_multimap<ExecutionId, std::shared_ptr<Call>> calls_;  // by the run that they wait for
  std::atomic<bool> stopping_ = false;
};

}  // namespace hapax
