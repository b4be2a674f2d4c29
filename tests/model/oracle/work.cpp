// Spec 3: claiming, heartbeats, reports, and what the sweeper does.
#include <algorithm>
#include <set>
#include <tuple>

#include "model/oracle/world.h"

namespace hapax::oracle {

namespace {

// Highest priority first, then run_at, then id.
bool goes_first(const Execution& a, const Execution& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.run_at != b.run_at) return a.run_at < b.run_at;
  return a.id < b.id;
}

bool has_passed(const std::optional<Time>& time, Time now) { return time && *time <= now; }

// ---- rate limits

std::int64_t permits(const Rate& rate, std::int64_t count) { return count * rate.per.count(); }

// The bucket as of now. Under another rate, what was taken is worth as many permits of the new one, at most an empty
// bucket.
Bucket settled(Bucket bucket, const Rate& rate, Time now) {
  const std::int64_t paid = (now - bucket.as_of).count() * bucket.rate.count;
  bucket.debt = std::max<std::int64_t>(bucket.debt - paid, 0);
  bucket.as_of = now;
  if (bucket.debt > 0 && bucket.rate != rate) {
    const std::int64_t per = bucket.rate.per.count();
    const std::int64_t taken = (bucket.debt + per - 1) / per;
    bucket.debt = permits(rate, std::min(taken, rate.burst));
  }
  bucket.rate = rate;
  return bucket;
}

bool has_permit(const Bucket& bucket) {
  return bucket.debt + permits(bucket.rate, 1) <= permits(bucket.rate, bucket.rate.burst);
}

Time next_permit(const Bucket& bucket) {
  const std::int64_t too_much = bucket.debt + permits(bucket.rate, 1) - permits(bucket.rate, bucket.rate.burst);
  return bucket.as_of + Duration((std::max<std::int64_t>(too_much, 0) + bucket.rate.count - 1) / bucket.rate.count);
}

// ---- claiming

// One of the queues that a claim names, tasks and turns of workflows apart.
struct Lane {
  QueueKey queue;
  Kind kind = Kind::task;
  std::vector<std::string> types;      // that the claim asks for; empty: any
  std::optional<Time> next_permit_at;  // set once the rate limit holds it back
};

std::int64_t count_running(const World& world, const Lane& lane, const std::string* concurrency_key = nullptr) {
  std::int64_t running = 0;
  for (const auto& [id, each] : world.executions) {
    if (each.status != Status::running || each.kind != lane.kind) continue;
    if (QueueKey(each.name_space, each.queue) != lane.queue) continue;
    if (!concurrency_key || each.concurrency_key == *concurrency_key) ++running;
  }
  return running;
}

bool is_of(const Execution& execution, const std::vector<std::string>& types) {
  return types.empty() || std::count(types.begin(), types.end(), execution.type) > 0;
}

std::vector<Execution*> pending_in(World& world, const Lane& lane) {
  std::vector<Execution*> pending;
  for (auto& [id, each] : world.executions) {
    const bool is_here = QueueKey(each.name_space, each.queue) == lane.queue && each.kind == lane.kind;
    if (is_here && each.status == Status::pending && is_of(each, lane.types)) pending.push_back(&each);
  }
  std::sort(pending.begin(), pending.end(), [](const Execution* a, const Execution* b) { return goes_first(*a, *b); });
  return pending;
}

// What the lane would hand out next, within the limits of its queue. Turns of workflows have no limits.
Execution* next_in(World& world, Lane& lane) {
  if (lane.next_permit_at) return nullptr;
  const QueuePolicy& policy = world.policy(lane.queue.first, lane.queue.second);
  for (Execution* each : pending_in(world, lane)) {
    if (each->run_at > world.now || has_passed(each->deadline_at, world.now)) continue;
    if (lane.kind == Kind::workflow) return each;
    if (policy.max_running && count_running(world, lane) >= *policy.max_running) return nullptr;
    if (each->concurrency_key && count_running(world, lane, &*each->concurrency_key) >= policy.concurrency_limit) {
      continue;
    }
    if (!policy.rate_limit) return each;
    const Bucket bucket = settled(world.buckets[lane.queue], *policy.rate_limit, world.now);
    if (has_permit(bucket)) return each;
    world.buckets[lane.queue] = bucket;
    lane.next_permit_at = next_permit(bucket);
    return nullptr;
  }
  return nullptr;
}

void take_permit(World& world, const Execution& task) {
  const QueueKey queue(task.name_space, task.queue);
  const QueuePolicy& policy = world.policy(task.name_space, task.queue);
  if (task.kind == Kind::workflow || !policy.rate_limit) return;
  Bucket& bucket = world.buckets[queue];
  bucket = settled(bucket, *policy.rate_limit, world.now);
  bucket.debt += permits(bucket.rate, 1);
}

// A task that is given back was not started.
void return_permit(World& world, const Execution& task) {
  const QueuePolicy& policy = world.policy(task.name_space, task.queue);
  if (task.kind == Kind::workflow || !policy.rate_limit) return;
  Bucket& bucket = world.buckets[{task.name_space, task.queue}];
  bucket = settled(bucket, *policy.rate_limit, world.now);
  bucket.debt = std::max<std::int64_t>(bucket.debt - permits(bucket.rate, 1), 0);
}

void hand_to(World& world, const ClaimRequest& request, Execution& execution, ClaimOutcome& outcome) {
  world.start(execution, request.worker, request.secret, request.lease);
  outcome.executions.push_back(execution);
  if (execution.kind == Kind::workflow) {
    outcome.events.push_back(world.events_after(execution.id, execution.run.seen));
  }
}

// What a claim that is said again still holds.
ClaimOutcome handed_before(World& world, const ClaimRequest& request) {
  std::vector<const Execution*> held;
  for (const auto& [id, each] : world.executions) {
    const bool is_held = each.status == Status::running && each.lease_secret == request.secret;
    const bool has_ended = each.lease_expires_at <= world.now;
    if (is_held && !has_ended && each.name_space == request.name_space) held.push_back(&each);
  }
  std::sort(held.begin(), held.end(), [](const Execution* a, const Execution* b) { return goes_first(*a, *b); });
  ClaimOutcome outcome;
  outcome.more = !held.empty();
  for (const Execution* each : held) {
    outcome.executions.push_back(*each);
    if (each->kind == Kind::workflow) outcome.events.push_back(world.events_after(each->id, each->run.seen));
  }
  return outcome;
}

bool asks_for(const ClaimRequest& request, const Execution& execution) {
  if (request.name_space != execution.name_space) return false;
  if (execution.kind == Kind::task ? !request.tasks : !request.workflows) return false;
  if (!is_of(execution, request.types)) return false;
  return std::count(request.queues.begin(), request.queues.end(), execution.queue) > 0;
}

}  // namespace

ClaimOutcome World::claim(const ClaimRequest& request) {
  if (request.repeatable) {
    ClaimOutcome before = handed_before(*this, request);
    if (before.more) return before;
  }
  std::vector<Lane> lanes;
  for (const std::string& queue : request.queues) {
    if (policy(request.name_space, queue).paused) continue;
    if (request.tasks) lanes.push_back({{request.name_space, queue}, Kind::task, request.types, {}});
    if (request.workflows) lanes.push_back({{request.name_space, queue}, Kind::workflow, request.types, {}});
  }
  ClaimOutcome outcome;
  while (std::ssize(outcome.executions) < request.limit) {
    Execution* first = nullptr;
    for (Lane& lane : lanes) {
      Execution* next = next_in(*this, lane);
      if (next && (!first || goes_first(*next, *first))) first = next;
    }
    if (!first) break;
    take_permit(*this, *first);
    hand_to(*this, request, *first, outcome);
  }
  if (std::ssize(outcome.executions) == request.limit) return outcome;
  for (const Lane& lane : lanes) {
    keep_earliest(outcome.next_at, lane.next_permit_at);
    for (const Execution* each : pending_in(*this, lane)) {
      if (each->run_at > now) keep_earliest(outcome.next_at, each->run_at);
    }
  }
  return outcome;
}

// Nothing but the order of claims decides when it goes: no limit of its queue, no concurrency key.
bool World::may_be_handed_out(const Execution& execution) {
  if (execution.status != Status::pending || execution.run_at > now || has_passed(execution.deadline_at, now)) {
    return false;
  }
  const QueuePolicy& rules = policy(execution.name_space, execution.queue);
  if (rules.paused || execution.concurrency_key) return false;
  return execution.kind == Kind::workflow || (!rules.max_running && !rules.rate_limit);
}

std::vector<ClaimOutcome> World::hand_out(std::vector<ExecutionId> ready, const std::vector<ClaimRequest>& waiters) {
  std::set<ExecutionId> ids(ready.begin(), ready.end());
  std::vector<Execution*> candidates;
  for (const ExecutionId& id : ids) {
    Execution* execution = find(id);
    if (execution && may_be_handed_out(*execution)) candidates.push_back(execution);
  }
  std::sort(candidates.begin(), candidates.end(), [](auto* a, auto* b) { return goes_first(*a, *b); });
  std::vector<ClaimOutcome> outcomes(waiters.size());
  for (Execution* candidate : candidates) {
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      if (!asks_for(waiters[i], *candidate) || std::ssize(outcomes[i].executions) >= waiters[i].limit) continue;
      hand_to(*this, waiters[i], *candidate, outcomes[i]);
      break;
    }
  }
  return outcomes;
}

// ---- heartbeats

namespace {

// The last progress counts; log lines are added to those of the same attempt. The generator sends short ones.
void take_notes(Execution& execution, const Extension& extension) {
  if (!extension.progress && extension.log.empty()) return;
  const std::string attempt = "{\"attempt\":" + std::to_string(execution.attempt);
  std::string lines, progress;
  if (execution.notes && execution.notes->starts_with(attempt + ",")) {
    const std::string& notes = *execution.notes;
    const auto between = [&](const std::string& from, const std::string& to) {
      const auto start = notes.find(from);
      if (start == std::string::npos) return std::string();
      return notes.substr(start + from.size(), notes.find(to, start) - start - from.size());
    };
    lines = between("\"log\":[", "]");
    progress = between("\"progress\":", "}");
  }
  for (const std::string& line : extension.log) lines += (lines.empty() ? "\"" : ",\"") + line + "\"";
  if (extension.progress) progress = *extension.progress;
  execution.notes = attempt + (lines.empty() ? "" : ",\"log\":[" + lines + "]") +
                    (progress.empty() ? "" : ",\"progress\":" + progress) + "}";
}

}  // namespace

ExtendOutcome World::extend(const Extension& extension) {
  ExtendOutcome outcome;
  Execution* execution = find(extension.token.execution);
  if (!execution || !is_current(*execution, extension.token)) return outcome;
  if (!extension.name_space.empty() && extension.name_space != execution->name_space) return outcome;
  outcome.ok = true;
  outcome.cancel_requested = execution->cancel_requested_at.has_value();
  if (execution->kind == Kind::task) take_notes(*execution, extension);
  if (extension.lease > Duration(0)) {
    execution->lease_expires_at = now + extension.lease;
    outcome.lease_expires_at = execution->lease_expires_at;
    return outcome;
  }
  // Given back: it costs no attempt.
  return_permit(*this, *execution);
  --execution->attempt;
  execution->lease_secret.reset();
  execution->lease_expires_at.reset();
  execution->attempt_ends_by.reset();
  if (!execution->cancel_requested_at || execution->kind == Kind::workflow) {
    execution->status = Status::pending;
    outcome.effects.ready.push_back(changed(*execution));
    return outcome;
  }
  close(*execution, Status::cancelled);
  outcome.effects.closed.push_back(changed(*execution));
  settle(execution->id, outcome.effects);
  return outcome;
}

// ---- reports

namespace {

void apply_report(World& world, Execution& task, const Report& report) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    task.result = completed->result;
    task.error.reset();
    world.close(task, Status::completed);
    return;
  }
  // Again later, without costing an attempt.
  if (const auto* snoozed = std::get_if<Report::Snoozed>(&report.outcome)) {
    --task.attempt;
    task.lease_expires_at.reset();
    task.attempt_ends_by.reset();
    task.status = Status::pending;
    if (task.cancel_requested_at) {
      world.close(task, Status::cancelled);
    } else {
      task.run_at = world.now + snoozed->by;
    }
    return;
  }
  const auto& failed = std::get<Report::Failed>(report.outcome);
  world.end_attempt(task, failed.error, true);
  if (task.cancel_requested_at) {
    world.close(task, Status::cancelled);
  } else if (failed.retryable && task.attempt < task.attempt_limit) {
    task.status = Status::pending;
    task.run_at = world.now + world.backoff(task, task.attempt);
    // The next attempt does not begin before the time that the error asks for.
    if (failed.retry_after) {
      const auto* after = std::get_if<Duration>(&*failed.retry_after);
      task.run_at = std::max(task.run_at, after ? world.now + *after : std::get<Time>(*failed.retry_after));
    }
  } else {
    world.close(task, Status::failed);
  }
}

// A lost answer: the same token says the same again.
bool repeats(const Execution& task, const Report& report) {
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    return task.status == Status::completed && task.attempt == report.token.attempt && task.result == completed->result;
  }
  // The token of a snooze is known until the next attempt begins.
  const bool was_snoozed = task.attempt + 1 == report.token.attempt;
  if (std::holds_alternative<Report::Snoozed>(report.outcome)) return was_snoozed;
  if (was_snoozed) return false;
  const AttemptError& error = std::get<Report::Failed>(report.outcome).error;
  for (const AttemptRecord& record : task.failed_attempts) {
    if (record.reported && record.attempt == report.token.attempt && record.error == error) return true;
  }
  return false;
}

bool says_the_same(const Report& a, const Report& b) {
  if (a.outcome.index() != b.outcome.index()) return false;
  if (const auto* completed = std::get_if<Report::Completed>(&a.outcome)) {
    return completed->result == std::get<Report::Completed>(b.outcome).result;
  }
  const auto* failed = std::get_if<Report::Failed>(&a.outcome);
  return failed && failed->error == std::get<Report::Failed>(b.outcome).error;
}

// What the report was that closed this execution, if a report did.
std::optional<Report> report_that_closed(const Execution& closed) {
  Report report;
  report.token.execution = closed.id;
  report.token.attempt = closed.attempt;
  if (closed.status == Status::completed) {
    if (!closed.lease_secret) return std::nullopt;
    report.token.secret = *closed.lease_secret;
    report.outcome = Report::Completed{closed.result};
    return report;
  }
  if (closed.failed_attempts.empty()) return std::nullopt;
  const AttemptRecord& last = closed.failed_attempts.back();
  if (!last.reported || last.attempt != closed.attempt) return std::nullopt;
  report.token.secret = last.secret;
  report.outcome = Report::Failed{last.error};
  return report;
}

FinishOutcome accepted(const Execution& task) {
  FinishOutcome outcome;
  outcome.accepted = true;
  outcome.status = task.status;
  outcome.name_space = task.name_space;
  outcome.queue = task.queue;
  outcome.had_concurrency_key = task.concurrency_key.has_value();
  if (task.status == Status::pending) outcome.run_at = task.run_at;
  return outcome;
}

FinishOutcome accepted(const Execution& task, const Report& report) {
  FinishOutcome outcome = accepted(task);
  outcome.snoozed = std::holds_alternative<Report::Snoozed>(report.outcome);
  return outcome;
}

// Ten minutes, although the execution is deleted earlier. Nobody reports on a run: its turns are committed.
void remember_report(World& world, const Execution& deleted) {
  if (deleted.kind == Kind::workflow) return;
  const Time until = *deleted.finished_at + std::chrono::minutes(10);
  const auto report = report_that_closed(deleted);
  if (report && until > world.now) world.reports[deleted.id] = {*report, accepted(deleted), until};
}

}  // namespace

FinishOutcome World::finish(const Report& report) {
  const auto is_foreign = [&](const std::string& owner) {
    return !report.name_space.empty() && report.name_space != owner;
  };
  Execution* task = find(report.token.execution);
  if (!task) {
    const auto remembered = reports.find(report.token.execution);
    if (remembered == reports.end() || remembered->second.until <= now) return {};
    const auto& [before, answer, until] = remembered->second;
    if (before.token != report.token || is_foreign(answer.name_space) || !says_the_same(before, report)) return {};
    return answer;
  }
  if (task->kind == Kind::workflow || is_foreign(task->name_space)) return {};
  if (!is_current(*task, report.token)) {
    return was_reported(*task, report.token) && repeats(*task, report) ? accepted(*task, report) : FinishOutcome();
  }
  apply_report(*this, *task, report);
  FinishOutcome outcome = accepted(*task, report);
  if (!is_closed(task->status)) return outcome;
  outcome.purged = settle(task->id, outcome.effects);
  if (outcome.purged) remember_report(*this, *outcome.purged);
  return outcome;
}

// ---- sweeping

namespace {

// Spec 3: lease expiry, timeout per attempt, deadline over all, the grace of a cancel. True if it changed anything.
bool expire(World& world, Execution& execution) {
  const Time now = world.now;
  const bool is_run = execution.kind == Kind::workflow;
  // It was asked to end, and its grace is over.
  if (is_run && !is_closed(execution.status) && has_passed(execution.cancel_by, now)) {
    execution.error = AttemptError{"CancelGraceExceeded", "the workflow did not end within the grace of the cancel"};
    execution.lease_secret.reset();
    world.close(execution, Status::cancelled);
    return true;
  }
  if (execution.status != Status::running) {
    if (is_closed(execution.status) || !has_passed(execution.deadline_at, now)) return false;
    execution.error = AttemptError{"DeadlineExceeded", "the deadline passed before it was done"};
    world.close(execution, Status::timed_out);
    return true;
  }
  if (has_passed(execution.cancel_by, now)) {
    world.end_attempt(execution, {"CancelGraceExceeded", "the worker did not stop within the grace of the cancel"},
                      false);
    world.close(execution, Status::cancelled);
    return true;
  }
  const bool is_to_be_cancelled = execution.cancel_requested_at.has_value();
  if (has_passed(execution.deadline_at, now)) {
    world.end_attempt(execution, {"DeadlineExceeded", "the deadline passed while it was running"}, false);
    world.close(execution, is_to_be_cancelled ? Status::cancelled : Status::timed_out);
    return true;
  }
  const bool is_timeout = has_passed(execution.attempt_ends_by, now);
  if (!is_timeout && !has_passed(execution.lease_expires_at, now)) return false;
  if (execution.kind == Kind::workflow) {  // the turn is taken again: it had no effects
    execution.lease_secret.reset();
    execution.lease_expires_at.reset();
    execution.attempt_ends_by.reset();
    const auto& committed = execution.run.committed;
    const std::int32_t lost = execution.attempt - (committed.empty() ? 0 : committed.back().attempt);
    if (lost % 3 != 0) {
      execution.status = Status::pending;
      execution.run_at = now;
      return true;
    }
    // Three workers in a row died with it: it waits for somebody to resume it.
    execution.status = Status::suspended;
    ++execution.run.stuck;
    execution.error = AttemptError{
        "WorkerLost", "3 workers in a row died during the same turn, the last one was " + execution.worker};
    Event stuck;
    stuck.kind = Event::Kind::stuck;
    stuck.error = execution.error;
    world.append(execution, stuck);
    return true;
  }
  if (is_timeout) {
    world.end_attempt(execution, {"AttemptTimeout", "the attempt took longer than its timeout"}, false);
  } else {
    world.end_attempt(execution, {"LeaseExpired", "the worker did not renew its lease in time"}, false);
  }
  if (is_to_be_cancelled) {
    world.close(execution, Status::cancelled);
  } else if (execution.attempt >= execution.attempt_limit) {
    world.close(execution, is_timeout ? Status::timed_out : Status::failed);
  } else {
    execution.status = Status::pending;
    execution.run_at = is_timeout ? now + world.backoff(execution, execution.attempt) : now;
  }
  return true;
}

std::vector<std::pair<Time, ExecutionId>> all_due(World& world) {
  std::vector<std::pair<Time, ExecutionId>> due;
  for (const auto& [id, execution] : world.executions) {
    if (const auto at = world.due_at(execution)) due.emplace_back(*at, id);
  }
  std::sort(due.begin(), due.end());
  return due;
}

}  // namespace

SweepOutcome World::sweep(std::int32_t limit) {
  SweepOutcome outcome;
  std::int32_t swept = 0;
  for (const auto& [at, id] : all_due(*this)) {
    if (at > now || swept == limit) break;
    ++swept;
    Execution& execution = executions.at(id);
    if (expire(*this, execution)) {
      const bool closed = is_closed(execution.status);
      if (World::waits_for_resume(execution)) continue;
      (closed ? outcome.effects.closed : outcome.effects.ready).push_back(changed(execution));
      if (closed) settle(id, outcome.effects);
    } else if (execution.status == Status::suspended) {
      wake_due(execution, outcome.effects);
    }
  }
  outcome.more = swept == limit;
  const auto left = all_due(*this);
  outcome.effects.next_due.reset();
  if (!left.empty() && left.front().first > now) outcome.effects.next_due = left.front().first;
  return outcome;
}

// ---- cleanup

PurgeOutcome World::purge(std::int32_t limit) {
  // Queue by queue, the longest closed first.
  std::vector<std::tuple<std::string, std::string, Kind, Time, ExecutionId>> over;
  for (const auto& [id, each] : executions) {
    if (!may_be_purged(each) || *each.finished_at + retention(each.name_space, each.queue, each.kind) > now) continue;
    over.emplace_back(each.name_space, each.queue, each.kind, *each.finished_at, id);
  }
  std::sort(over.begin(), over.end());
  PurgeOutcome outcome;
  for (const auto& [name_space, queue, kind, finished_at, id] : over) {
    if (outcome.executions == limit) break;
    remember_report(*this, purge_one(id));
    ++outcome.executions;
  }

  std::vector<std::pair<Time, IdentityHash>> dead;
  for (const auto& [hash, entry] : ledger) {
    if (entry.tombstone && has_passed(entry.expires_at, now)) dead.emplace_back(*entry.expires_at, hash);
  }
  std::sort(dead.begin(), dead.end());
  for (const auto& [at, hash] : dead) {
    if (outcome.identities == limit) break;
    ledger.erase(hash);
    ++outcome.identities;
  }

  std::vector<std::pair<Time, QueueKey>> old;
  for (const auto& [key, request] : requests) {
    if (request.expires_at <= now) old.emplace_back(request.expires_at, key);
  }
  std::sort(old.begin(), old.end());
  for (const auto& [at, key] : old) {
    if (outcome.requests == limit) break;
    requests.erase(key);
    ++outcome.requests;
  }
  outcome.more = outcome.executions == limit || outcome.identities == limit || outcome.requests == limit;
  return outcome;
}

}  // namespace hapax::oracle
