// Workflows: turns, history, waiting for the end.
#include "core/name.h"
#include "engine/check_request.h"
#include "engine/store_engine.h"
#include "engine/turn.h"

namespace hapax {

void StoreEngine::commit_turns(std::vector<TurnRequest> requests, Reply<std::vector<TurnOutcome>> reply) {
  if (is_refused(reply, [&] { check(requests); })) return;
  std::vector<Turn> turns;
  turns.reserve(requests.size());
  const Time now = store_->now();
  for (TurnRequest& request : requests) {
    turns.push_back(resolve_turn(std::move(request), settings_, options_, ids_.next(now)));
  }
  const std::size_t bytes = bytes_of(turns);
  lanes_.turns.put(std::move(turns), std::move(reply), bytes);
}

std::vector<TurnOutcome> StoreEngine::commit_resolved(std::span<const Turn> turns) {
  ClaimDesk::Loan loan = claims_.lend_late();
  std::vector<TurnOutcome> outcomes = store_->commit_turns(turns, loan.waiters());
  loan.deliver();
  Effects effects;
  Announcements ready, left;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const TurnOutcome& outcome = outcomes[i];
    effects.add(outcome.effects);
    if (outcome.accepted) claimed_ += steps_begun(turns[i]), completed_ += steps_completed(turns[i]);
    if (outcome.run) results_.closed(outcome.run->id, outcome.run);
    if (!outcome.step) {
      if (!outcome.accepted) ++leases_lost_;
      continue;
    }
    count_finished(*outcome.step, ready, left);
    if (is_closed(outcome.step->status)) results_.closed(turns[i].step->token.execution);
  }
  spread(effects);
  announce_finished(std::move(ready), left);
  return outcomes;
}

std::optional<Execution> StoreEngine::begin_within_turn(const Execution& run, const TurnWorker& worker,
                                                        TurnRequest::Command& command) {
  return hapax::begin_within_turn(run, worker, command, settings_, options_, claims_, store_->now());
}

std::optional<Execution> StoreEngine::find_workflow(const std::string& name_space, const std::string& workflow_id) {
  if (check_idempotency_key(workflow_id)) return std::nullopt;  // no workflow can be called so
  return hapax::find_workflow(*store_, name_space, workflow_id);
}

std::vector<Event> StoreEngine::history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                                        std::int32_t limit) {
  if (!store_->find(name_space, run)) return {};
  return store_->history(run, after, limit);
}

std::shared_ptr<Waiting> StoreEngine::wait_workflow(const std::string& name_space, const std::string& workflow_id,
                                                    Duration wait, Reply<std::optional<Execution>> reply) {
  if (stopped_) {
    reply(std::make_exception_ptr(Failure(Failure::Code::stopped, "the engine is shutting down")));
    return nullptr;
  }
  return wait_for_runs(results_, reader_, name_space, workflow_id, wait, std::move(reply),
                       [this, name_space, workflow_id] { return find_workflow(name_space, workflow_id); });
}

}  // namespace hapax
