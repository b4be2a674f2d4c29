// The names of objects and hints in the bucket. Two kinds of objects: the truth (tasks, ledger records, requests,
// settings, queues, transactions), found by a name derived from its content; and hints, empty objects whose names sort
// in the order of a scan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/identity.h"
#include "core/time.h"
#include "store/store.h"

namespace hapax::s3 {

// One segment of a name: letters, digits, "_" and "-" stand for themselves.
std::string escape(std::string_view text);
std::string unescape(std::string_view segment);

// ---- the truth

std::string task_name(const ExecutionId& id);
std::optional<ExecutionId> task_id(std::string_view task_name);
std::string record_name(const NamedScope& scope, const IdentityHash& hash);
std::string record_name(const Execution& execution);  // of one with an identity
std::string record_name_in(std::string_view folder, const IdentityHash& hash);
std::string request_name(std::string_view name_space, std::string_view request_key);
std::string setting_name(const SettingDocument& setting);
std::string queue_name(std::string_view name_space, std::string_view queue);
// Empty: that the queue was used.
std::string used_queue_name(std::string_view name_space, std::string_view queue);
struct UsedQueue {
  std::string name_space, queue;

  auto operator<=>(const UsedQueue&) const = default;
};
std::optional<UsedQueue> parse_used_queue(std::string_view name);
std::string transaction_name(std::string_view id);
std::string worker_name(std::string_view name_space, std::string_view worker);
std::string workers_prefix(std::string_view name_space);

inline constexpr std::string_view kTasks = "tasks/";
inline constexpr std::string_view kRecords = "idempotency/";
inline constexpr std::string_view kSettings = "settings/";
inline constexpr std::string_view kUsedQueues = "used/";
inline constexpr std::string_view kTransactions = "transactions/";
inline constexpr std::string_view kWorkers = "workers/";
inline constexpr std::string_view kFormat = "format.json";
inline constexpr std::string_view kPulse = "pulse.json";

// ---- hints

// A hint about one execution. Each write of one has its own name (its mark), so that removing one never removes
// another.
struct Hint {
  enum class Kind : std::uint8_t {
    ready,    // pending: in the order of claims
    running,  // of a queue, by when its lease, attempt or grace ends
    due,      // pending or suspended: by when sweeping has something to do
    closed,   // by when it was closed
    step,     // of a run
    run       // of a workflow id, latest first
  };

  Kind kind = Kind::ready;
  ExecutionId id;
  Time time;
  std::int32_t priority = 0;    // ready
  bool delayed = false;         // ready: was not due when it was written
  std::string type;             // ready: its digest
  std::string concurrency_key;  // ready, running: its digest; empty: none
  std::string claim;            // running: the digest of its claim's secret, if the claim may be said again; or empty
  std::string name_space, queue;
  hapax::Kind execution_kind = hapax::Kind::task;
  std::string group;  // step: the run; run: the digest of the workflow id
  std::string mark;

  std::string name() const;
  // Whether this one, written before, leads to the place that `wanted` leads to: a time that is too early is harmless.
  bool serves(const Hint& wanted) const;

  static std::optional<Hint> parse(std::string_view name);
};

inline constexpr std::string_view kReady = "ready/";
inline constexpr std::string_view kRunning = "running/";
inline constexpr std::string_view kDue = "due/";
inline constexpr std::string_view kClosed = "closed/";

std::string ready_prefix(std::string_view name_space, std::string_view queue, Kind kind);
std::string ready_prefix(std::string_view name_space, std::string_view queue, Kind kind, std::string_view type);
std::string closed_prefix(std::string_view name_space, std::string_view queue, Kind kind);
std::string running_prefix(std::string_view name_space, std::string_view queue, Kind kind);
// Of all queues of a namespace, below kReady, kRunning or kClosed; of all its workflows.
std::string namespace_prefix(std::string_view hints, std::string_view name_space);
std::string all_runs_prefix(std::string_view name_space);
std::string steps_prefix(const ExecutionId& run);
std::string runs_prefix(std::string_view name_space, std::string_view workflow_id);

std::string new_mark();
std::string digest_of_key(std::string_view concurrency_key);
std::string digest_of_type(std::string_view type);
std::string digest_of_claim(const LeaseSecret& secret);

// The hints that lead to an execution as it is; without marks.
std::vector<Hint> wanted_hints(const Execution& execution, Time now);

// A hint that an object is to be looked at by the purge from that time on.
enum class End : std::uint8_t { identity, request, grave };
std::string ends_prefix(End end);
std::string end_hint(End end, Time time, std::string_view object_name);
struct EndHint {
  Time time;
  std::string object_name;
};
std::optional<EndHint> parse_end_hint(End end, std::string_view name);

}  // namespace hapax::s3
