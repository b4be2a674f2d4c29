// Everything a user can ask of Hapax, as plain values in and out. One implementation works on a store (local_engine.h);
// another speaks HTTP to a server. Code that uses this interface runs embedded and remote alike.
//
// Verbs that commit answer through a Reply, after the commit. Reads answer at once. All may be called from any thread,
// and a Reply may come on the calling thread before the call returns.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/json.h"
#include "core/settings.h"
#include "engine/activities.h"
#include "engine/reply.h"
#include "store/store.h"

namespace hapax {

// ---- submit

// A caller's submission. The type's settings decide what is absent, then the queue's, then the server's.
struct SubmitRequest {
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
  bool dry_run = false;
  std::optional<ExecutionId> id;  // a UUIDv7 drawn by the sender; the same id again is the same submission
  bool brief = false;             // if it is a duplicate, its answer may be without payloads (result_omitted)
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
  bool result_omitted = false;  // the execution has more than this says: the batch's answer is long enough
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

// ---- claim

struct ClaimCall {
  std::string name_space;
  std::vector<std::string> queues;
  bool tasks = true;
  bool workflows = false;  // turns of workflows
  std::int32_t limit = 1;
  std::string worker;
  Duration lease{60'000};
  Duration wait{0};  // for the first one
};

// ---- turns of workflows

// A worker's turn: its commands, and how it ended. See Turn in store/store.h.
struct TurnRequest {
  // A task that was begun within the turn: see Engine::begin_step().
  struct BegunStep {
    Submission submission;
    Turn::Begun begun;
  };
  struct Command {
    Event event;                         // kind, step, name, and until or value
    std::optional<SubmitRequest> start;  // of a task or child: what to submit
    std::optional<BegunStep> begun = std::nullopt;
  };
  struct Continued {
    Json input;  // of the next run
  };

  LeaseToken token;
  std::string name_space;
  std::shared_ptr<const Execution> run =
      nullptr;  // as it was claimed, if the caller still has it; not sent to a server
  std::optional<Report>
      step;               // that ends with this turn, which follows it without a claim; the token is the last turn's
  std::int64_t seen = 0;  // the latest event that this turn knew
  std::vector<Command> commands;
  std::variant<Turn::Suspended, Turn::Unfinished, Turn::Completed, Turn::Failed, Turn::Stuck, Continued> end;
};

// The worker that would begin a step within a turn: like a claim, without what is not known before.
struct BeginCall {
  std::string name_space;
  const std::vector<std::string>& queues;  // whose tasks this worker runs
  std::string worker;
  Duration lease{60'000};
};

struct Claimed {
  Execution execution;
  std::vector<Event> events;  // of a workflow: those after run.seen
};

// A call that waits. Dropping the handle changes nothing; cancel() ends the wait with an empty answer if it still
// lasts, so that no task is handed to a caller that has hung up.
class Waiting {
 public:
  virtual ~Waiting() = default;
  virtual void cancel() = 0;
};

// ---- settings

// The settings in force, and which of them the configuration file decided.
struct QueueView {
  std::string name;
  QueueSettings settings;
  std::vector<std::string> from_file;
  bool known = false;  // it was set or used
  QueueCount count;
};

// The API cannot change this: the configuration file names the setting, and the file wins.
class DecidedByFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The identity of a type's submissions without a key or an identity of their own, and what decides it.
struct TypeIdentity {
  enum class Source : std::uint8_t {
    file,       // the configuration file states it
    api,        // it was stated over the API
    declared,   // none is stated, and the type is declared: in the file, or by PUT
    undeclared  // the server's [identity] undeclared
  };

  Strategy strategy = Strategy::always_unique;
  Source source = Source::undeclared;

  bool operator==(const TypeIdentity&) const = default;

  // Of a workflow's steps: a default never merges them.
  Strategy of_steps() const {
    const bool is_stated = source == Source::file || source == Source::api;
    return is_stated ? strategy : Strategy::always_unique;
  }
};

struct TypeView {
  std::string name;
  TypeSettings settings;
  std::vector<std::string> from_file;
  bool declared = false;  // in the file, or by put_type(); one that was only patched is not
  TypeIdentity identity = {};
};

// Counts of the engine's work since it started, for /metrics.
struct EngineCounters {
  std::int64_t submitted = 0, deduplicated = 0, conflicts = 0;
  std::int64_t claimed = 0, completed = 0, failed_attempts = 0, leases_lost = 0;
  std::int64_t swept = 0, purged = 0;
  std::int64_t commits = 0;  // store calls made by the submit, claim and finish lanes
  std::int64_t store_failures = 0;
  std::int64_t waiting_claims = 0, waiting_results = 0;  // right now
};

class Engine {
 public:
  virtual ~Engine() = default;

  // The results are in the order of the requests, of which there may be up to kMaxBatch.
  static constexpr std::size_t kMaxBatch = 1000;
  virtual void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
                      Reply<std::vector<SubmitResult>> reply) = 0;

  // Answers with at least one execution, or with none when the wait is over.
  virtual std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) = 0;
  virtual void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) = 0;
  virtual void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) = 0;
  virtual void control(ControlRequest request, Reply<ControlOutcome> reply) = 0;

  virtual void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) = 0;

  // Lets the worker that has the turn of `run` begin a task which the turn asks for, before the turn is committed.
  // Returns the attempt as a claim would hand it out; the command then carries it. Only for a task that is claimable at
  // once (no identity, limit, concurrency key, delay, timeout or deadline), with nothing before it in its queue.
  // Nothing: it goes the ordinary way. The worker commits the turn as soon as the task has ended, or takes longer than
  // 50 ms.
  virtual std::optional<Execution> begin_step(const Execution& /*run*/, const BeginCall& /*call*/,
                                              TurnRequest::Command& /*command*/) {
    return std::nullopt;
  }

  // The latest run of a workflow, and a run's events after that one.
  virtual std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) = 0;
  virtual std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                                     std::int32_t limit) = 0;
  // Like wait_closed(), over all runs that the workflow continues as.
  virtual std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id,
                                                 Duration wait, Reply<std::optional<Execution>> reply) = 0;

  // Answers once the execution is closed or the wait has ended, with the execution as it is then; nothing if unknown.
  virtual std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                               Reply<std::optional<Execution>> reply) = 0;

  virtual std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) = 0;
  virtual Page list(const ListFilter& filter) = 0;

  // The identity of a submission of this type with this key; the scope is the type's unless given.
  virtual std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                                     const std::optional<Scope>& scope,
                                                     const std::optional<std::string>& queue,
                                                     const std::string& key) = 0;
  virtual bool release_identity(const std::string& name_space, const IdentityHash& hash) = 0;

  virtual QueueView queue(const std::string& name_space, const std::string& name) = 0;
  virtual std::vector<QueueView> queues(const std::string& name_space) = 0;
  virtual QueueView put_queue(const std::string& name_space, const std::string& name,
                              const QueueSettings& settings) = 0;
  // Throws DecidedByFile if the configuration file says otherwise.
  virtual QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) = 0;
  virtual TypeView type(const std::string& name_space, const std::string& name) = 0;
  virtual std::vector<TypeView> types(const std::string& name_space) = 0;
  // Declares it.
  virtual TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) = 0;
  // Tunes it: TypeSettings::patched() of what was stored over the API. Throws InvalidField.
  virtual TypeView patch_type(const std::string& name_space, const std::string& name, const Json& patch) = 0;

  // Lives as long as the engine.
  virtual Activities& activities() = 0;

  // Throws if the store does not answer.
  virtual void check_ready() = 0;
  virtual EngineCounters counters() = 0;
  virtual std::vector<QueueCount> queue_counts() = 0;
};

}  // namespace hapax
