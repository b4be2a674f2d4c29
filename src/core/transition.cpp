#include "core/transition.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/invariant.h"
#include "core/retry.h"
#include "core/workflow.h"

namespace hapax {

namespace {

void require_running(const Execution& execution) {
  invariant(execution.status == Status::running, "only a running execution has an attempt to end or extend");
  invariant(execution.attempt > 0 && execution.started_at && execution.lease_secret,
            "a running execution has an attempt, its start and its lease");
}

// What every transition leaves behind.
void check(const Execution& execution) {
  const bool running = execution.status == Status::running;
  invariant(is_closed(execution.status) == execution.finished_at.has_value(),
            "an execution has an end if and only if it is closed");
  invariant(running || (!execution.lease_expires_at && !execution.attempt_ends_by),
            "only a running execution has a lease or a time for its attempt");
  invariant(!execution.cancel_by || running || (execution.kind == Kind::workflow && !is_closed(execution.status)),
            "only a running task or an open workflow has a grace");
  invariant(!execution.cancel_by || execution.cancel_requested_at, "a grace is counted from a requested cancel");
  invariant(execution.kind == Kind::workflow || std::ssize(execution.failed_attempts) <= execution.attempt,
            "no more attempts failed than were started");
}

void close(Execution& execution, Status status, Time now) {
  execution.status = status;
  execution.finished_at = now;
  execution.cancel_by.reset();
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
}

// Keeps why the running attempt ended. The secret stays with the execution only if its worker reported: only then is
// the same report again a repetition rather than stale.
void end_attempt(Execution& execution, AttemptError error, bool reported, Time now) {
  require_running(execution);
  execution.failed_attempts.push_back({.attempt = execution.attempt,
                                       .worker = execution.worker,
                                       .started_at = *execution.started_at,
                                       .ended_at = now,
                                       .error = error,
                                       .secret = *execution.lease_secret,
                                       .reported = reported});
  execution.error = std::move(error);
  if (!reported) execution.lease_secret.reset();
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
}

bool has_attempts_left(const Execution& execution) { return execution.attempt < execution.attempt_limit; }

void back_to_pending(Execution& execution, Time run_at) {
  execution.status = Status::pending;
  execution.run_at = run_at;
}

// The running attempt ended without a report, and nothing stops the next one.
void expire_attempt(Execution& execution, AttemptError error, Status when_exhausted, Time run_at, Time now) {
  end_attempt(execution, std::move(error), false, now);
  if (execution.cancel_requested_at) {
    close(execution, Status::cancelled, now);
  } else if (has_attempts_left(execution)) {
    back_to_pending(execution, run_at);
  } else {
    close(execution, when_exhausted, now);
  }
}

// Turns in a row, with this one, that were claimed and never committed.
std::int32_t lost_turns(const Execution& run) {
  return run.attempt - (run.run.committed.empty() ? 0 : run.run.committed.back().attempt);
}

// A turn without a report is simply taken again: it had no effects. But not for ever: it may be what kills its workers.
void expire_turn(Execution& run, Time now) {
  end_turn(run);
  run.lease_secret.reset();
  if (lost_turns(run) % kMaxLostTurns != 0) return back_to_pending(run, now);
  run.status = Status::suspended;
  run.run.stuck += 1;
  run.error = AttemptError{
      std::string(kWorkerLost),
      fmt::format("{} workers in a row died during the same turn, the last one was {}", kMaxLostTurns, run.worker)};
}

bool has_come(const std::optional<Time>& end, Time now) { return end && *end <= now; }

}  // namespace

void start_attempt(Execution& execution, std::string worker, const LeaseSecret& secret, Duration lease, Time now) {
  invariant(execution.status == Status::pending, "only a pending execution is started");
  invariant(execution.run_at <= now, "nothing is started before its run_at");
  invariant(execution.kind == Kind::workflow || has_attempts_left(execution), "no attempt is started beyond the limit");
  execution.status = Status::running;
  execution.attempt += 1;
  execution.started_at = now;
  execution.worker = std::move(worker);
  execution.lease_secret = secret;
  execution.lease_expires_at = now + lease;
  if (execution.timeout) execution.attempt_ends_by = now + *execution.timeout;
  check(execution);
}

TokenCheck check_token(const Execution& execution, const LeaseToken& token, std::string_view name_space) {
  if (!name_space.empty() && name_space != execution.name_space) return TokenCheck::stale;
  if (execution.attempt == token.attempt && execution.lease_secret == token.secret) {
    return execution.status == Status::running ? TokenCheck::current : TokenCheck::repeated;
  }
  if (was_snoozed(execution, token)) return TokenCheck::repeated;
  const bool reported_before =
      std::any_of(execution.failed_attempts.begin(), execution.failed_attempts.end(), [&](const AttemptRecord& record) {
        return record.reported && record.attempt == token.attempt && record.secret == token.secret;
      });
  return reported_before ? TokenCheck::repeated : TokenCheck::stale;
}

void extend_lease(Execution& execution, Duration lease, Time now) {
  require_running(execution);
  execution.lease_expires_at = now + lease;
}

void give_back(Execution& execution, Time now) {
  require_running(execution);
  execution.attempt -= 1;
  execution.lease_secret.reset();
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
  if (execution.cancel_requested_at && execution.kind == Kind::task) {
    close(execution, Status::cancelled, now);
  } else {
    back_to_pending(execution, execution.run_at);
  }
  check(execution);
}

void complete(Execution& execution, std::optional<std::string> result, Time now) {
  require_running(execution);
  execution.result = std::move(result);
  execution.error.reset();
  close(execution, Status::completed, now);
  check(execution);
}

void fail_attempt(Execution& execution, AttemptError error, bool retryable, Time now, Time not_before) {
  end_attempt(execution, std::move(error), true, now);
  if (execution.cancel_requested_at) {
    close(execution, Status::cancelled, now);
  } else if (retryable && has_attempts_left(execution)) {
    back_to_pending(execution, std::max(now + backoff(execution.retry, execution.id, execution.attempt), not_before));
  } else {
    close(execution, Status::failed, now);
  }
  check(execution);
}

void snooze(Execution& execution, Duration by, Time now) {
  require_running(execution);
  execution.attempt -= 1;
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
  if (execution.cancel_requested_at) {
    close(execution, Status::cancelled, now);
  } else {
    back_to_pending(execution, now + by);
  }
  check(execution);
}

bool was_snoozed(const Execution& execution, const LeaseToken& token) {
  return execution.status != Status::running && execution.attempt + 1 == token.attempt &&
         execution.lease_secret == token.secret;
}

bool expire(Execution& execution, Time now) {
  if (execution.kind == Kind::workflow && !is_closed(execution.status) && has_come(execution.cancel_by, now)) {
    execution.error = AttemptError{"CancelGraceExceeded", "the workflow did not end within the grace of the cancel"};
    execution.lease_secret.reset();
    close(execution, Status::cancelled, now);
    return true;
  }
  if (execution.status == Status::pending || execution.status == Status::suspended) {
    if (!has_come(execution.deadline_at, now)) return false;
    execution.error = AttemptError{"DeadlineExceeded", "the deadline passed before it was done"};
    close(execution, Status::timed_out, now);
    check(execution);
    return true;
  }
  if (execution.status != Status::running) return false;
  if (has_come(execution.cancel_by, now)) {
    end_attempt(execution, {"CancelGraceExceeded", "the worker did not stop within the grace of the cancel"}, false,
                now);
    close(execution, Status::cancelled, now);
  } else if (has_come(execution.deadline_at, now)) {
    end_attempt(execution, {"DeadlineExceeded", "the deadline passed while it was running"}, false, now);
    close(execution, execution.cancel_requested_at ? Status::cancelled : Status::timed_out, now);
  } else if (execution.kind == Kind::workflow &&
             (has_come(execution.lease_expires_at, now) || has_come(execution.attempt_ends_by, now))) {
    expire_turn(execution, now);
  } else if (has_come(execution.attempt_ends_by, now)) {
    const Time next = now + backoff(execution.retry, execution.id, execution.attempt);
    expire_attempt(execution, {"AttemptTimeout", "the attempt took longer than its timeout"}, Status::timed_out, next,
                   now);
  } else if (has_come(execution.lease_expires_at, now)) {
    expire_attempt(execution, {"LeaseExpired", "the worker did not renew its lease in time"}, Status::failed, now, now);
  } else {
    return false;
  }
  check(execution);
  return true;
}

bool recount(Execution& execution, std::optional<Duration> run_in, std::optional<Duration> lease, Time now) {
  bool changed = false;
  const auto cap = [&](Time& instant, const std::optional<Duration>& length) {
    if (!length || instant <= now + *length) return;
    instant = now + *length;
    changed = true;
  };
  if (execution.status == Status::pending) cap(execution.run_at, run_in);
  if (execution.status == Status::running) {
    if (execution.lease_expires_at) cap(*execution.lease_expires_at, lease);
    if (execution.attempt_ends_by) cap(*execution.attempt_ends_by, execution.timeout);
    if (execution.cancel_by) {
      invariant(execution.cancel_requested_at.has_value(), "a grace is counted from a requested cancel");
      cap(*execution.cancel_by, *execution.cancel_by - *execution.cancel_requested_at);
      cap(*execution.cancel_requested_at, Duration(0));
    }
  }
  return changed;
}

bool request_cancel(Execution& execution, Duration grace, Time now) {
  const bool is_asked = execution.kind == Kind::workflow;  // a workflow that was asked to end is closed now
  if (is_closed(execution.status) || (execution.cancel_requested_at && !is_asked)) return false;
  execution.cancel_requested_at = now;
  if (execution.status == Status::running && execution.kind == Kind::task) {
    execution.cancel_by = now + grace;
  } else {
    if (execution.status == Status::running) execution.lease_secret.reset();
    close(execution, Status::cancelled, now);
  }
  check(execution);
  return true;
}

bool retry_closed(Execution& execution, Time now) {
  if (!is_closed(execution.status) || execution.status == Status::completed) return false;
  back_to_pending(execution, now);
  execution.attempt_limit = execution.attempt + execution.max_attempts;
  execution.finished_at.reset();
  execution.cancel_requested_at.reset();
  if (has_come(execution.deadline_at, now)) execution.deadline_at.reset();
  check(execution);
  return true;
}

void end_turn(Execution& run) {
  run.lease_expires_at.reset();
  run.attempt_ends_by.reset();
}

void close_run(Execution& run, Status status, Time now) {
  invariant(is_closed(status), "a workflow is closed with a closed status");
  invariant(!is_closed(run.status), "only an open workflow is closed");
  close(run, status, now);
  check(run);
}

void reopen(Execution& run, Time now) {
  invariant(is_closed(run.status) && run.status != Status::completed,
            "only a workflow that did not complete is reopened");
  back_to_pending(run, now);
  run.finished_at.reset();
  run.cancel_requested_at.reset();
  run.error.reset();
  run.lease_secret.reset();
  if (has_come(run.deadline_at, now)) run.deadline_at.reset();
  check(run);
}

}  // namespace hapax
