// Submitting tasks and starting workflows: the request, the receipt, the refusal. Part of Engine: see engine.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/json.h"
#include "core/settings.h"
#include "engine/reply.h"
#include "store/store.h"

namespace hapax {

// A submission as its caller words it. What is absent, the type's settings decide, then the queue's, then the server's.
struct SubmitRequest {
  // Its sender runs the task itself, and gets a claim on it with the receipt.
  struct RunHere {
    std::string worker;
    Duration lease{60'000};
  };

  Kind kind = Kind::task;  // a workflow has its workflow id as its idempotency_key
  std::string type;
  Json input;
  std::optional<std::string> queue;
  std::optional<std::string> idempotency_key;
  std::optional<Scope> scope;
  std::optional<Strategy> identity;
  std::optional<std::vector<std::string>> identity_fields;
  std::optional<Reuse> reuse;
  std::optional<OnDuplicate> on_duplicate;
  std::optional<Duration> idempotency_ttl;
  std::optional<std::int32_t> priority;
  std::optional<Time> run_at;
  std::optional<Duration> delay;
  std::optional<std::int32_t> max_attempts;
  RetrySettings retry;
  std::optional<Duration> timeout;
  std::optional<std::variant<Duration, Time>> deadline;
  std::optional<std::string> concurrency_key;
  std::optional<std::map<std::string, std::string>> headers;  // for the handler; steps and children inherit them
  std::optional<std::vector<std::string>> tags;               // for finding it
  bool dry_run = false;
  std::optional<ExecutionId> id;  // a UUIDv7 drawn by the sender; the same id again is the same submission
  std::optional<RunHere> run_here;
  bool brief = false;  // if it is a duplicate, its answer may be without payloads (result_omitted)
};

// Why a submission is the same as another one, and for how long.
struct Match {
  Identity identity;
  std::optional<Time> expires_at;
  std::optional<ExecutionId> superseded;
};

struct Receipt {
  bool created = false;
  Execution execution;
  bool result_expired = false;  // the execution was purged: only its id, status and times are left
  bool result_omitted = false;  // the same is told of the execution, which has more: the batch's answer is long enough
  bool claimed = false;         // by its run_here: the execution is running, under its lease
  std::optional<Match> match;   // absent: always unique
  bool dry_run = false;
};

// A submission that is answered with an error. Nothing was changed.
struct Refusal {
  enum class Code : std::uint8_t {
    invalid_argument,
    invalid_id,
    idempotency_key_required,
    identity_field_missing,
    idempotency_conflict,
    task_already_exists,
    task_already_completed,
    store_corrupt  // the owner is damaged
  };

  Code code = Code::invalid_argument;
  std::string message;
  std::string pointer;                  // the field at fault, for the 400s
  std::optional<Execution> existing;    // for the 409s
  std::optional<InputHash> input_hash;  // idempotency_conflict: of this submission
  bool result_omitted = false;          // task_already_completed: as in a receipt
};

using SubmitResult = std::variant<Receipt, Refusal>;

class SubmitVerbs {
 public:
  virtual ~SubmitVerbs() = default;

  // The results are in the order of the requests, of which there may be up to kMaxBatch.
  static constexpr std::size_t kMaxBatch = 1000;
  virtual void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
                      Reply<std::vector<SubmitResult>> reply) = 0;
};

}  // namespace hapax
