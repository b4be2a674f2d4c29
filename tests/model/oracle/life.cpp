// The life of an execution: attempts, leases, closing, and what closing one does to others.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/oracle/world.h"

namespace hapax::oracle {

void World::start(Execution& execution, const std::string& worker, const LeaseSecret& secret, Duration lease) {
  execution.status = Status::running;
  ++execution.attempt;
  execution.started_at = now;
  execution.worker = worker;
  execution.lease_secret = secret;
  execution.lease_expires_at = now + lease;
  if (execution.timeout) execution.attempt_ends_by = now + *execution.timeout;
}

void World::close(Execution& execution, Status status) {
  execution.status = status;
  execution.finished_at = now;
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
  execution.cancel_by.reset();
}

// Every attempt's error is kept. A token under which nothing was reported is worth nothing from now on.
void World::end_attempt(Execution& execution, const AttemptError& error, bool reported) {
  AttemptRecord record;
  record.attempt = execution.attempt;
  record.worker = execution.worker;
  record.started_at = execution.started_at.value();
  record.ended_at = now;
  record.error = error;
  record.secret = execution.lease_secret.value();
  record.reported = reported;
  execution.failed_attempts.push_back(record);
  execution.error = error;
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
  if (!reported) execution.lease_secret.reset();
}

// Exponential, capped, with full jitter. The draw is the first four bytes of a hash of the execution's id and the
// attempt.
Duration World::backoff(const Execution& execution, std::int32_t attempt) {
  const RetryPolicy& policy = execution.retry;
  double pause = static_cast<double>(policy.initial.count());
  for (std::int32_t i = 1; i < attempt; ++i) pause *= policy.factor;
  pause = std::min(pause, static_cast<double>(policy.max.count()));
  const std::string id(execution.id.bytes.begin(), execution.id.bytes.end());
  const Digest digest = sha256(id + std::to_string(attempt));
  std::uint32_t draw = 0;
  std::memcpy(&draw, digest.data(), sizeof draw);
  return Duration(static_cast<std::int64_t>(pause * (static_cast<double>(draw) / std::exp2(32))));
}

bool World::is_current(const Execution& execution, const LeaseToken& token) {
  return execution.status == Status::running && execution.attempt == token.attempt &&
         execution.lease_secret == token.secret;
}

bool World::was_reported(const Execution& execution, const LeaseToken& token) {
  const bool is_latest = execution.attempt == token.attempt || execution.attempt + 1 == token.attempt;  // snoozed
  if (execution.status != Status::running && is_latest && execution.lease_secret == token.secret) {
    return true;
  }
  for (const AttemptRecord& record : execution.failed_attempts) {
    if (record.reported && record.attempt == token.attempt && record.secret == token.secret) return true;
  }
  return false;
}

// Spec 3, cancel: pending: at once. Running: the worker hears of it, and has the grace. A turn has no effects of its
// own, so a workflow is closed at once, running or not.
bool World::request_cancel(Execution& execution) {
  if (is_closed(execution.status)) return false;
  if (execution.cancel_requested_at && execution.kind == Kind::task) return false;
  execution.cancel_requested_at = now;
  if (execution.status == Status::running && execution.kind == Kind::task) {
    execution.cancel_by = now + policy(execution.name_space, execution.queue).cancel_grace;
    return true;
  }
  if (execution.status == Status::running) execution.lease_secret.reset();
  close(execution, Status::cancelled);
  return true;
}

bool World::waits_for_resume(const Execution& run) {
  return run.status == Status::suspended && run.run.stuck > 0 && run.error && run.error->type == "WorkerLost";
}

bool World::cancel_open(Execution& execution, Effects& effects) {
  if (!request_cancel(execution)) return false;
  keep_earliest(effects.next_due, due_at(execution));
  if (!is_closed(execution.status)) return true;
  effects.closed.push_back(changed(execution));
  settle(execution.id, effects);
  return true;
}

void World::announce(const Execution& execution, Effects& effects) {
  effects.ready.push_back(changed(execution));
  keep_earliest(effects.next_due, due_at(execution));
}

namespace {

Event::Kind end_kind(Status status) {
  switch (status) {
    case Status::completed: return Event::Kind::completed;
    case Status::cancelled: return Event::Kind::cancelled;
    case Status::timed_out: return Event::Kind::timed_out;
    default: return Event::Kind::failed;
  }
}

}  // namespace

std::optional<Execution> World::settle(const ExecutionId& id, Effects& effects) {
  Execution& closed = executions.at(id);
  const bool is_continued = closed.run.continued_as.has_value();  // the next run will have the answer
  if (closed.kind == Kind::workflow) {
    if (!is_continued) {
      Event end;
      end.kind = end_kind(closed.status);
      if (closed.status == Status::completed) end.value = closed.result;
      if (closed.status == Status::failed) end.error = closed.error;
      append(closed, end);
    }
    std::erase_if(waits, [&](const auto& wait) { return wait.first.first == id; });
    if (closed.status != Status::completed) {
      for (const ExecutionId& step : steps_of(id)) cancel_open(executions.at(step), effects);
    }
  }
  if (!is_continued) {
    if (closed.parent) deliver(*closed.parent, closed.step, closed, effects);
    const auto all_waits = waits;
    for (const auto& [place, wait] : all_waits) {
      if (wait.on != id) continue;
      waits.erase(place);
      deliver(place.first, place.second, closed, effects);
    }
  }
  if (!may_be_purged(closed) || retention(closed.name_space, closed.queue, closed.kind) > Duration(0)) return {};
  return purge_one(id);
}

// A workflow's steps are never purged before the workflow is.
bool World::may_be_purged(const Execution& execution) {
  return is_closed(execution.status) && (!execution.parent || !find(*execution.parent));
}

// Spec 2.5: an entry with time left outlives its owner as a tombstone; any other goes with it.
Execution World::purge_one(const ExecutionId& id) {
  const Execution purged = executions.at(id);
  executions.erase(id);
  histories.erase(id);
  signals.erase(id);
  std::erase_if(waits, [&](const auto& wait) { return wait.first.first == id; });
  if (!purged.identity) return purged;
  const auto entry = ledger.find(purged.identity->hash);
  if (entry == ledger.end() || entry->second.owner != id) return purged;
  if (!entry->second.expires_at || *entry->second.expires_at <= now) {
    ledger.erase(entry);
    return purged;
  }
  Tombstone tombstone;
  tombstone.kind = purged.kind;
  tombstone.type = purged.type;
  tombstone.queue = purged.queue;
  tombstone.idempotency_key = purged.idempotency_key;
  tombstone.status = purged.status;
  tombstone.created_at = purged.created_at;
  tombstone.finished_at = purged.finished_at.value();
  entry->second.tombstone = tombstone;
  return purged;
}

}  // namespace hapax::oracle
