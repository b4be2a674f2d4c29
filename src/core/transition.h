// The life of an execution: every change of its status, and nothing else changes it.
//
//   pending ──start_attempt──▶ running ──complete──▶ completed
//      ▲                          │
//      ├──── fail_attempt, expire ┤ attempts left; snooze
//      │                          └─ none left: failed, timed_out; cancel requested: cancelled
//      └─ retry_closed ── failed, cancelled, timed_out
//
// Pure: no I/O, no clock, no randomness. Stores load an execution, apply one of these, and write it back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/execution.h"
#include "core/lease.h"

namespace hapax {

// pending → running: the next attempt, under a lease. The execution must be pending and its run_at must have come.
void start_attempt(Execution& execution, std::string worker, const LeaseSecret& secret, Duration lease, Time now);

enum class TokenCheck {
  current,   // of the running attempt: its report counts
  repeated,  // a report under this token was accepted before
  stale      // of an attempt that has ended
};
// Every token is stale for a caller in another namespace; an empty namespace stands for all.
TokenCheck check_token(const Execution& execution, const LeaseToken& token, std::string_view name_space = {});

// running → running with a longer lease.
void extend_lease(Execution& execution, Duration lease, Time now);

// running → pending at once, as if it had never been claimed: the worker never started it.
void give_back(Execution& execution, Time now);

// running → completed. A result that arrives after a cancel was requested still counts: the work is done.
void complete(Execution& execution, std::optional<std::string> result, Time now);

// running → pending after a pause, or failed if it cannot be retried or no attempt is left, or cancelled if a cancel
// was requested. The attempt's error is kept. The next attempt does not begin before `not_before`.
void fail_attempt(Execution& execution, AttemptError error, bool retryable, Time now, Time not_before = {});

// running → pending after that time, or cancelled if a cancel was requested. The attempt is not counted. Its token is
// kept until the next attempt begins, so that the same report again is recognised.
void snooze(Execution& execution, Duration by, Time now);
bool was_snoozed(const Execution& execution, const LeaseToken& token);

// Handles what is due by `now`: a lease, an attempt's timeout, the grace of a cancel, the deadline. True if it changed.
bool expire(Execution& execution, Time now);

// A clock that was ahead has been set back: what was counted from a future time is counted from now. A lease never
// becomes longer than it was asked for, an attempt than its timeout, a delay or back-off than it was. `run_in` and
// `lease` are the durations that run_at and the lease were counted with; without run_in, the caller gave run_at, and it
// stays. True if it changed.
bool recount(Execution& execution, std::optional<Duration> run_in, std::optional<Duration> lease, Time now);

// pending, suspended → cancelled at once, and a running workflow too: its turn has no effects. A running task stays
// running: its worker learns of it at the next heartbeat, and it is closed after the grace. False if it was closed or
// the cancel was requested before.
bool request_cancel(Execution& execution, Duration grace, Time now);

// failed, cancelled, timed_out → pending with as many new attempts as it had at first. A deadline that has passed is
// dropped. False in any other status.
bool retry_closed(Execution& execution, Time now);

// ---- workflows

// Ends the running turn and its lease; the caller says what the status is now.
void end_turn(Execution& run);

// Closes a workflow whose turn ended it.
void close_run(Execution& run, Status status, Time now);

// failed, cancelled, timed_out → pending. A deadline that has passed is dropped.
void reopen(Execution& run, Time now);

}  // namespace hapax
