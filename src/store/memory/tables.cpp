#include "store/memory/tables.h"

#include "core/claim_secret.h"

namespace hapax::memory {

const Execution* Tables::find(const ExecutionId& id) const {
  const auto found = executions_.find(id);
  return found == executions_.end() ? nullptr : &found->second;
}

const Execution* Tables::find(const std::string& name_space, const ExecutionId& id) const {
  const Execution* execution = find(id);
  return execution && execution->name_space == name_space ? execution : nullptr;
}

const std::set<ExecutionId>& Tables::ids_in(const std::string& name_space, Kind kind) const {
  static const std::set<ExecutionId> kNone;
  const auto found = ids_.find({name_space, kind});
  return found == ids_.end() ? kNone : found->second;
}

std::set<ExecutionId> Tables::claimed_under(const LeaseSecret& secret) const {
  const auto claim = claims_.find(secret);
  return claim == claims_.end() ? std::set<ExecutionId>() : claim->second;
}

void Tables::insert(Execution execution) {
  const ExecutionId id = execution.id;
  ids_[{execution.name_space, execution.kind}].insert(id);
  if (execution.kind == Kind::workflow) runs_.emplace(execution.idempotency_key.value_or(""), id);
  if (execution.parent) steps_.emplace(*execution.parent, id);
  queues_.emplace(execution.name_space, execution.queue);
  index(executions_.emplace(id, std::move(execution)).first->second);
}

void Tables::index(const Execution& execution) {
  if (const auto due = execution.due_at()) due_.emplace(*due, execution.id);
  if (execution.status == Status::pending) {
    OpenTasks& tasks = open_[{execution.name_space, execution.queue, execution.kind}];
    tasks.pending[execution.type][execution.priority].emplace(execution.run_at, execution.id);
  } else if (execution.status == Status::running) {
    OpenTasks& tasks = open_[{execution.name_space, execution.queue, execution.kind}];
    ++tasks.running;
    if (execution.concurrency_key) ++tasks.running_by_key[*execution.concurrency_key];
    if (is_of_repeatable_claim(execution.lease_secret.value())) claims_[*execution.lease_secret].insert(execution.id);
  } else if (is_closed(execution.status)) {
    closed_[{execution.name_space, execution.queue, execution.kind}].emplace(*execution.finished_at, execution.id);
  }
}

void Tables::unindex(const Execution& execution) {
  if (const auto due = execution.due_at()) due_.erase({*due, execution.id});
  if (is_closed(execution.status)) {
    const auto closed = closed_.find({execution.name_space, execution.queue, execution.kind});
    closed->second.erase({*execution.finished_at, execution.id});
    if (closed->second.empty()) closed_.erase(closed);
    return;
  }
  const auto open = open_.find({execution.name_space, execution.queue, execution.kind});
  if (open == open_.end()) return;
  OpenTasks& tasks = open->second;
  if (execution.status == Status::pending) {
    const auto levels = tasks.pending.find(execution.type);
    const auto level = levels->second.find(execution.priority);
    level->second.erase({execution.run_at, execution.id});
    if (level->second.empty()) levels->second.erase(level);
    if (levels->second.empty()) tasks.pending.erase(levels);
  } else if (execution.status == Status::running) {
    --tasks.running;
    if (execution.concurrency_key) {
      const auto running = tasks.running_by_key.find(*execution.concurrency_key);
      if (--running->second == 0) tasks.running_by_key.erase(running);
    }
    if (const auto claim = claims_.find(execution.lease_secret.value()); claim != claims_.end()) {
      claim->second.erase(execution.id);
      if (claim->second.empty()) claims_.erase(claim);
    }
  }
  if (tasks.empty()) open_.erase(open);
}

namespace {

Duration retention_of_owner(const QueuePolicies& policies, const LedgerEntry& entry, const Execution* owner) {
  if (owner) return policies.retention(*owner);
  return policies.retention(entry.name_space, entry.tombstone->queue, entry.tombstone->kind);
}

}  // namespace

bool Tables::is_live(const LedgerEntry& entry, Time now) const {
  const Execution* owner = owner_of(entry);
  return hapax::is_live(entry, owner, retention_of_owner(*policies, entry, owner), now);
}

std::optional<Time> Tables::dies_at(const LedgerEntry& entry) const {
  const Execution* owner = owner_of(entry);
  return hapax::dies_at(entry, owner, retention_of_owner(*policies, entry, owner));
}

bool Tables::may_be_purged(const Execution& execution) const {
  return is_closed(execution.status) && !(execution.parent && find(*execution.parent));
}

void Tables::erase(const ExecutionId& id) {
  unindex(executions_.at(id));
  const Execution execution = std::move(executions_.extract(id).mapped());
  const auto ids = ids_.find({execution.name_space, execution.kind});
  ids->second.erase(id);
  if (ids->second.empty()) ids_.erase(ids);
  const auto is_it = [&](const auto& entry) { return entry.second == id; };
  if (execution.kind == Kind::workflow) {
    std::erase_if(runs_, is_it);
    histories.erase(id);
    signals.erase(id);
    std::erase_if(waits, [&](const auto& entry) { return entry.first.first == id; });
  }
  if (execution.parent) std::erase_if(steps_, is_it);
}

}  // namespace hapax::memory
