// Control operations, reading, and waiting for results.
#include <fmt/format.h>

#include "core/name.h"
#include "engine/check_request.h"
#include "engine/store_engine.h"
#include "engine/submit.h"
#include "engine/turn.h"

namespace hapax {

void StoreEngine::control(ControlRequest request, Reply<ControlOutcome> reply) {
  if (is_refused(reply, [&] { check(request); })) return;
  if (request.workflow_id && check_idempotency_key(*request.workflow_id)) {  // no workflow can be called so
    ControlOutcome unknown;
    unknown.kind = ControlOutcome::Kind::not_found;
    return reply(std::move(unknown));
  }
  put_control(std::move(request), std::move(reply));
}

void StoreEngine::put_control(ControlRequest request, Reply<ControlOutcome> reply) {
  resolve_control(request, options_, ids_.next(store_->now()));
  std::vector<ControlRequest> requests;
  requests.push_back(std::move(request));
  lanes_.control.put(std::move(requests), [reply = std::move(reply)](Answer<std::vector<ControlOutcome>> answers) {
    try {
      reply(std::move(std::move(answers).get().front()));
    } catch (...) {
      reply(std::current_exception());
    }
  });
}

std::vector<ControlOutcome> StoreEngine::commit_controls(std::span<const ControlRequest> requests) {
  std::vector<ControlOutcome> outcomes = store_->control(requests);
  Effects effects;
  for (const ControlOutcome& outcome : outcomes) effects.add(outcome.effects);
  spread(effects);
  sweeper_.clean_requests();
  return outcomes;
}

// ---- read

std::optional<Execution> StoreEngine::find(const std::string& name_space, const ExecutionId& id) {
  try {
    return store_->find(name_space, id);
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt || !failure.for_clients().empty()) throw;
    throw Failure(failure.code(), fmt::format("{}: {}", id.to_string(), failure.what()),
                  fmt::format("What is stored of {} cannot be read: restore it from a backup.", id.to_string()));
  }
}

std::vector<WorkerInfo> StoreEngine::workers(const std::string& name_space) { return store_->workers(name_space); }

std::optional<Why> StoreEngine::why(const std::string& name_space, const ExecutionId& id) {
  return store_->why(name_space, id);
}

std::optional<Why> StoreEngine::why_workflow(const std::string& name_space, const std::string& workflow_id) {
  const auto run = find_workflow(name_space, workflow_id);
  return run ? store_->why(name_space, run->id) : std::nullopt;
}

Page StoreEngine::list(const ListFilter& filter) {
  check(filter);
  return store_->list(filter);
}

std::shared_ptr<Waiting> StoreEngine::wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                                  Reply<std::optional<Execution>> reply) {
  if (stopped_) {
    reply(std::make_exception_ptr(Failure(Failure::Code::stopped, "the engine is shutting down")));
    return nullptr;
  }
  return results_.wait(name_space, id, wait, std::move(reply));
}

std::optional<FoundIdentity> StoreEngine::find_identity(const std::string& name_space, const std::string& type,
                                                        const std::optional<Scope>& scope,
                                                        const std::optional<std::string>& queue,
                                                        const std::string& key) {
  check_identity_query(type, scope, queue, key);
  return find_key(*store_, name_space, type, scope, queue, key, settings_);
}

bool StoreEngine::release_identity(const std::string& name_space, const IdentityHash& hash) {
  results_.forget_runs();
  return store_->release_identity(name_space, hash);
}

}  // namespace hapax
