// An execution: the record of one task or workflow, as every store keeps it and every reader sees it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/id.h"
#include "core/identity.h"
#include "core/lease.h"
#include "core/retry.h"
#include "core/time.h"

namespace hapax {

// Stored by number, as every enumeration here and in identity.h and workflow.h that is stored: do not change the
// numbers.
enum class Kind : std::uint8_t { task = 0, workflow = 1 };

enum class Status : std::uint8_t {
  pending = 0,
  running = 1,
  suspended = 2,
  completed = 3,
  failed = 4,
  cancelled = 5,
  timed_out = 6
};

std::string_view to_string(Kind kind);
std::string_view to_string(Status status);
std::optional<Status> parse_status(std::string_view text);

constexpr bool is_closed(Status status) {
  return status == Status::completed || status == Status::failed || status == Status::cancelled ||
         status == Status::timed_out;
}

// Why an attempt ended without a result. `type` is the program's word for it; Hapax's own are LeaseExpired,
// AttemptTimeout, DeadlineExceeded and CancelGraceExceeded.
struct AttemptError {
  std::string type;
  std::string message;
  std::optional<std::string> stack = std::nullopt;    // where it happened, for people
  std::optional<std::string> details = std::nullopt;  // JSON, for programs

  bool operator==(const AttemptError&) const = default;

  std::int64_t payload_bytes() const;
};

// An attempt that ended in an error. A successful one leaves none: the execution itself tells of it.
struct AttemptRecord {
  std::int32_t attempt = 0;
  std::string worker;
  Time started_at;
  Time ended_at;
  AttemptError error;
  LeaseSecret secret;     // so that a repeated report of this failure is recognised
  bool reported = false;  // by its worker; false if the engine ended it (lease expired, timed out)

  bool operator==(const AttemptRecord&) const = default;
};

// A committed turn of a workflow: so that it is recognised when it is sent again after the workflow went on.
struct CommittedTurn {
  std::int32_t attempt = 0;
  std::array<std::uint8_t, 8> secret{};  // the first half of its lease's secret
  Status status = Status::suspended;     // the answer

  bool operator==(const CommittedTurn&) const = default;
};

// What a workflow has beyond a task.
struct RunState {
  std::int64_t events = 0;      // the number of the latest event of its history
  std::int64_t seen = 0;        // the latest event that the last turn knew
  std::int32_t steps = 0;       // commands so far
  std::int32_t stuck = 0;       // turns in a row that did not match the history
  std::optional<Time> wake_at;  // of a suspended one: a timer ends, or a stuck turn is tried again
  std::optional<ExecutionId> continued_as;
  std::vector<CommittedTurn> committed;  // the latest kRememberedTurns, oldest first; see core/workflow.h

  bool operator==(const RunState&) const = default;
};

struct Execution {
  ExecutionId id;
  Kind kind = Kind::task;
  std::string name_space;
  std::string type;
  std::string queue;
  std::string input = "null";  // canonical JSON
  InputHash input_hash;

  std::optional<std::string> idempotency_key;  // as the caller gave it
  std::optional<Identity> identity;            // absent: always unique
  std::optional<ExecutionId> parent;           // the run of a workflow that this is a step of
  std::int32_t step = 0;                       // which one
  std::string parent_workflow_id;

  std::int32_t priority = 0;  // higher goes first
  std::optional<std::string> concurrency_key;
  std::int32_t max_attempts = 3;
  RetryPolicy retry;
  std::optional<Duration> timeout;  // of one attempt
  std::optional<Time> deadline_at;  // of all attempts
  Time created_at;
  // Neither is part of its identity. Both are canonical JSON: an object of strings, an array of strings.
  std::optional<std::string> headers;     // for its handler; its steps and children inherit them
  std::optional<std::string> tags;        // for finding it
  std::optional<ExecutionId> superseded;  // the owner of its identity that made way for it

  // What changes while it lives. Only the functions of core/transition.h change it.
  Status status = Status::pending;
  Time run_at;                     // not claimed before
  std::int32_t attempt = 0;        // started so far
  std::int32_t attempt_limit = 3;  // raised by a retry operation
  std::optional<Time> started_at;  // of the latest attempt
  std::optional<Time> finished_at;
  std::optional<Time> cancel_requested_at;
  std::optional<Time> cancel_by;      // the grace of a requested cancel ends
  std::optional<std::string> result;  // JSON; absent is nothing returned, which is not the JSON null
  std::optional<AttemptError> error;  // of the last attempt that failed
  std::vector<AttemptRecord> failed_attempts;
  std::optional<std::string> notes;  // progress and log of an attempt, as JSON: see core/notes.h

  // The lease of the running attempt; after a report was accepted, the one it was accepted under.
  std::string worker;
  std::optional<LeaseSecret> lease_secret;
  std::optional<Time> lease_expires_at;
  std::optional<Time> attempt_ends_by;  // started_at + timeout

  RunState run;          // of a workflow
  bool awaited = false;  // a workflow waits for it that is not its parent

  bool damaged = false;  // what is stored of it does not match its checksum: nothing of it may be handed out

  bool operator==(const Execution&) const = default;

  // Stable over all attempts: what a handler hands to the outside world as its idempotency key.
  std::string effect_key() const { return id.to_string(); }

  // What its texts weigh: input, result and errors. Answers are bounded by it.
  std::int64_t payload_bytes() const;

  // The first instant at which sweeping has something to do here: a lease, an attempt, a grace or a deadline ends.
  std::optional<Time> due_at() const;
};

}  // namespace hapax
