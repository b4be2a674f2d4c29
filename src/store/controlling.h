// Control operations under a request key. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/identity.h"
#include "store/effects.h"

namespace hapax {

struct ControlRequest {
  enum class Action : std::uint8_t { cancel, retry, resume, fork, signal };

  std::string name_space;
  std::string request_key;
  Action action = Action::cancel;
  ExecutionId target;
  std::optional<std::string> workflow_id;  // instead of `target`: its latest run
  InputHash parameters;                    // of everything below: the same key with others is a conflict
  Duration request_ttl = std::chrono::days(7);

  std::string signal;                  // signal: its name
  std::optional<std::string> payload;  // and what comes with it, JSON

  bool asks = false;              // cancel of a workflow: its code is told, and may answer; `payload` is the reason
  std::optional<Duration> grace;  // after which it is closed in any case

  std::int32_t from_step = 1;    // fork: the first step that runs again
  std::string fork_workflow_id;  // of the new workflow
  Identity fork_identity;        // of that id
  ExecutionId fork_id;           // the new run's, fresh for every request
};

struct ControlOutcome {
  enum class Kind : std::uint8_t {
    done,            // the operation ran, or ran before under this key (`replayed`)
    not_found,       // no such execution
    not_retryable,   // retry: it is not failed, cancelled or timed_out
    identity_taken,  // retry, resume, fork: the identity has another owner by now, in `other`
    not_open,        // signal: the workflow is closed
    no_such_step,    // fork: the workflow has not come that far; `steps` says how far
    failed_before,   // this key's operation failed; `before` says how
    key_conflict     // this key was used for another operation or execution
  };

  Kind kind = Kind::done;
  bool replayed = false;
  bool changed = false;             // whether the operation changed anything
  Status status = Status::pending;  // of the execution right after the operation
  std::optional<ExecutionId> other;
  std::optional<ExecutionId> execution;  // that it was done to; fork: the new run
  std::int32_t steps = 0;
  Kind before = Kind::done;
  Effects effects;  // not part of the answer

  bool operator==(const ControlOutcome&) const = default;
};

class StoreControl {
 public:
  virtual ~StoreControl() = default;

  // Runs the operation and keeps its outcome under the request key, as one.
  virtual std::vector<ControlOutcome> control(std::span<const ControlRequest> requests) = 0;
};

}  // namespace hapax
