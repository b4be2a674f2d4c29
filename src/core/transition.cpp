#include "core/transition.h"

#include <algorithm>
#include <cassert>

#include "core/retry.h"

namespace hapax {

namespace {

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

// A turn without a report is simply taken again: it had no effects.
void expire_turn(Execution& run, Time now) {
  end_turn(run);
  run.lease_secret.reset();
  back_to_pending(run, now);
}

bool has_come(const std::optional<Time>& end, Time now) { return end && *end <= now; }

}  // namespace

void start_attempt(Execution& execution, std::string worker, const LeaseSecret& secret, Duration lease, Time now) {
  assert(execution.status == Status::pending && execution.run_at <= now);
  execution.status = Status::running;
  execution.attempt += 1;
  execution.started_at = now;
  execution.worker = std::move(worker);
  execution.lease_secret = secret;
  execution.lease_expires_at = now + lease;
  if (execution.timeout) execution.attempt_ends_by = now + *execution.timeout;
}

TokenCheck check_token(const Execution& execution, const LeaseToken& token, std::string_view name_space) {
  if (!name_space.empty() && name_space != execution.name_space) return TokenCheck::stale;
  if (execution.attempt == token.attempt && execution.lease_secret == token.secret) {
    return execution.status == Status::running ? TokenCheck::current : TokenCheck::repeated;
  }
  const bool reported_before =
      std::any_of(execution.failed_attempts.begin(), execution.failed_attempts.end(), [&](const AttemptRecord& record) {
        return record.reported && record.attempt == token.attempt && record.secret == token.secret;
      });
  return reported_before ? TokenCheck::repeated : TokenCheck::stale;
}

void extend_lease(Execution& execution, Duration lease, Time now) {
  assert(execution.status == Status::running);
  execution.lease_expires_at = now + lease;
}

void give_back(Execution& execution, Time now) {
  assert(execution.status == Status::running);
  execution.attempt -= 1;
  execution.lease_secret.reset();
  execution.lease_expires_at.reset();
  execution.attempt_ends_by.reset();
  if (execution.cancel_requested_at) {
    close(execution, Status::cancelled, now);
  } else {
    back_to_pending(execution, execution.run_at);
  }
}

void complete(Execution& execution, std::optional<std::string> result, Time now) {
  assert(execution.status == Status::running);
  execution.result = std::move(result);
  execution.error.reset();
  close(execution, Status::completed, now);
}

void fail_attempt(Execution& execution, AttemptError error, bool retryable, Time now) {
  assert(execution.status == Status::running);
  end_attempt(execution, std::move(error), true, now);
  if (execution.cancel_requested_at) {
    close(execution, Status::cancelled, now);
  } else if (retryable && has_attempts_left(execution)) {
    back_to_pending(execution, now + backoff(execution.retry, execution.id, execution.attempt));
  } else {
    close(execution, Status::failed, now);
  }
}

bool expire(Execution& execution, Time now) {
  if (execution.status == Status::pending || execution.status == Status::suspended) {
    if (!has_come(execution.deadline_at, now)) return false;
    execution.error = AttemptError{"DeadlineExceeded", "the deadline passed before it was done"};
    close(execution, Status::timed_out, now);
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
      cap(*execution.cancel_by, *execution.cancel_by - *execution.cancel_requested_at);
      cap(*execution.cancel_requested_at, Duration(0));
    }
  }
  return changed;
}

bool request_cancel(Execution& execution, Duration grace, Time now) {
  if (is_closed(execution.status) || execution.cancel_requested_at) return false;
  execution.cancel_requested_at = now;
  if (execution.status == Status::running && execution.kind == Kind::task) {
    execution.cancel_by = now + grace;
  } else {
    if (execution.status == Status::running) execution.lease_secret.reset();
    close(execution, Status::cancelled, now);
  }
  return true;
}

bool retry_closed(Execution& execution, Time now) {
  if (!is_closed(execution.status) || execution.status == Status::completed) return false;
  back_to_pending(execution, now);
  execution.attempt_limit = execution.attempt + execution.max_attempts;
  execution.finished_at.reset();
  execution.cancel_requested_at.reset();
  if (has_come(execution.deadline_at, now)) execution.deadline_at.reset();
  return true;
}

void end_turn(Execution& run) {
  run.lease_expires_at.reset();
  run.attempt_ends_by.reset();
}

void close_run(Execution& run, Status status, Time now) { close(run, status, now); }

void reopen(Execution& run, Time now) {
  back_to_pending(run, now);
  run.finished_at.reset();
  run.cancel_requested_at.reset();
  run.error.reset();
  run.lease_secret.reset();
  if (has_come(run.deadline_at, now)) run.deadline_at.reset();
}

}  // namespace hapax
