// What a worker tells its program of attempts, leases and the engine.
#include "sdk/worker.h"

namespace hapax::detail {

// A program that gets every report by itself writes its own lines.
void Worker::tell_attempt(const RunningTask& task, const Report& report, Steady::duration took) const {
  const Execution& execution = task.execution;
  if (const auto* failed = std::get_if<Report::Failed>(&report.outcome)) {
    if (on_attempt_end_ || failed->error.type == kCancelled) return;
    app_.telling().tell(AttemptFailed{execution.id.to_string(), execution.type, execution.attempt, took,
                                      failed->error.type, failed->error.message, !failed->retryable});
  } else if (std::holds_alternative<Report::Completed>(report.outcome) && !app_.telling().is_unobserved()) {
    app_.telling().tell(AttemptCompleted{execution.id.to_string(), execution.type, execution.attempt, took});
  }
}

void Worker::tell_lease_lost(const RunningTask& task) const {
  const Execution& execution = task.execution;
  const bool is_workflow = execution.kind == Kind::workflow;
  app_.telling().tell(LeaseLost{is_workflow ? execution.idempotency_key.value_or("") : execution.id.to_string(),
                                execution.type, execution.attempt});
}

bool Worker::is_away() const {
  const std::lock_guard lock(mutex_);
  return away_since_.has_value();
}

// Null: the engine has answered.
void Worker::tell_reachable(const std::exception* failure) {
  std::optional<Steady::time_point> since;
  {
    std::lock_guard lock(mutex_);
    since = away_since_;
    if (draining_ || since.has_value() == (failure != nullptr)) return;
    away_since_ = failure ? std::optional(Steady::now()) : std::nullopt;
  }
  if (failure) {
    app_.telling().tell(ServerAway{failure->what()});
  } else {
    app_.telling().tell(ServerBack{std::chrono::duration_cast<Duration>(Steady::now() - *since)});
  }
}

}  // namespace hapax::detail
