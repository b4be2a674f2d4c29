// Workflows: turns, history, waiting for the end.
#include <algorithm>

#include "core/name.h"
#include "core/update.h"
#include "engine/check_request.h"
#include "engine/store_engine.h"
#include "engine/turn.h"

namespace hapax {

void StoreEngine::commit_turns(std::vector<TurnRequest> requests, Reply<std::vector<TurnOutcome>> reply) {
  if (is_refused(reply, [&] { check(requests); })) return;
  std::vector<Turn> turns;
  turns.reserve(requests.size());
  std::vector<std::size_t> refused;  // their positions
  const Time now = store_->now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto turn = resolve_turn(std::move(requests[i]), settings_, options_, ids_.next(now));
    turn ? turns.push_back(*std::move(turn)) : refused.push_back(i);
  }
  if (turns.empty()) return reply(std::vector<TurnOutcome>(refused.size()));
  if (!refused.empty()) {
    reply = [refused = std::move(refused), reply = std::move(reply)](Answer<std::vector<TurnOutcome>> answers) {
      try {
        std::vector<TurnOutcome> outcomes = std::move(answers).get();
        for (const std::size_t i : refused) outcomes.emplace(outcomes.begin() + static_cast<std::ptrdiff_t>(i));
        reply(std::move(outcomes));
      } catch (...) {
        reply(std::current_exception());
      }
    };
  }
  const std::size_t bytes = bytes_of(turns);
  lanes_.turns.put(std::move(turns), std::move(reply), bytes);
}

namespace {

bool answers_update(const Turn& turn) {
  return std::any_of(turn.events.begin(), turn.events.end(), [](const Event& event) {
    return event.kind == Event::Kind::publish && is_update_answer(event.name);
  });
}

}  // namespace

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
    if (outcome.accepted && answers_update(turns[i])) updates_.may_be_answered(turns[i].token.execution);
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

StepsWithinTurns StoreEngine::steps_within_turns(const std::string& name_space, const std::vector<std::string>& queues,
                                                 const std::vector<std::string>& types) {
  return hapax::steps_within_turns(name_space, queues, types, settings_, options_, claims_);
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

std::optional<WorkflowVerbs::Values> StoreEngine::values(const std::string& name_space,
                                                         const std::string& workflow_id) {
  constexpr std::int32_t kPage = 1000;
  const auto run = find_workflow(name_space, workflow_id);
  if (!run) return std::nullopt;
  Values values;
  for (std::int64_t after = 0;;) {
    const std::vector<Event> page = store_->history(run->id, after, kPage);
    if (page.empty()) return values;
    for (const Event& event : page) {
      if (event.kind == Event::Kind::publish && !is_update_answer(event.name))
        values.insert_or_assign(event.name, event.value.value_or("null"));
    }
    after = page.back().no;
  }
}

std::shared_ptr<Waiting> StoreEngine::update(UpdateRequest request, Duration wait, Reply<UpdateOutcome> reply) {
  if (is_refused(reply, [&] { check(request); })) return nullptr;
  if (check_idempotency_key(request.workflow_id)) {  // no workflow can be called so
    UpdateOutcome unknown;
    unknown.delivery.kind = ControlOutcome::Kind::not_found;
    reply(std::move(unknown));
    return nullptr;
  }
  return updates_.update(std::move(request), wait, std::move(reply));
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
