#include "engine/begin_step.h"

#include <algorithm>

#include "core/canonical_json.h"
#include "core/transition.h"
#include "core/workflow.h"

namespace hapax {

bool may_begin_within_turn(const SubmitRequest& request) {
  return request.kind == Kind::task && !request.idempotency_key && !request.identity && !request.identity_fields &&
         !request.run_at && !request.delay && !request.timeout && !request.deadline && !request.concurrency_key;
}

// The step's first attempt, and what the command says of it.
Execution begin_step(Execution step, const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                     Time now) {
  step.id = step_id(run.id, step.type, command.event.step);
  step.parent = run.id;
  step.step = command.event.step;
  step.parent_workflow_id = run.idempotency_key.value_or("");
  if (!step.headers) step.headers = run.headers;
  step.created_at = step.run_at = now;
  const LeaseSecret secret = LeaseSecret::generate();
  start_attempt(step, call.worker, secret, call.lease, now);
  command.within_turn = TurnRequest::WithinTurn{std::nullopt, {secret, call.worker, call.lease}};
  return step;
}

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<Execution> begin_as_allowed(const Execution& run, const TurnWorker& call, TurnRequest::Command& command,
                                          const StepsWithinTurns& allowed, Time now) {
  if (!command.start || !may_begin_within_turn(*command.start) || run.timeout) return std::nullopt;
  const SubmitRequest& start = *command.start;
  if (start.headers || !start.queue || !contains(call.queues, *start.queue) || !contains(allowed.queues, *start.queue))
    return {};
  if (contains(allowed.except_types, start.type)) return std::nullopt;
  Execution step;
  step.name_space = call.name_space;
  step.type = start.type;
  step.queue = *start.queue;
  step.input = canonical_json(start.input);
  step.priority = start.priority.value_or(step.priority);
  step.max_attempts = step.attempt_limit = start.max_attempts.value_or(step.max_attempts);
  return begin_step(std::move(step), run, call, command, now);
}

}  // namespace hapax
