// What the objects of the bucket say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/execution.h"
#include "core/ledger.h"
#include "core/rate.h"
#include "core/report.h"
#include "core/workflow.h"
#include "store/rules/rows.h"

namespace hapax::s3 {

// A step of another run that may wait for this execution; whether it does, its run's waits say.
struct Waiter {
  ExecutionId run;
  std::int32_t step = 0;

  bool operator==(const Waiter&) const = default;
};

// tasks/{shard}/{id}.json: an execution, and of a workflow all there is of its run.
struct TaskDocument {
  Execution execution;
  std::vector<Event> history;
  std::vector<Wait> waits;
  std::vector<Event> signals;  // that no step has waited for yet
  std::vector<Waiter> waiters;
  std::vector<std::string> hints;  // the names of those that lead here; any other one is left over
  std::string mark;                // drawn when it was created: distinguishes it from another one with this id

  bool operator==(const TaskDocument&) const = default;
};

// idempotency/{scope}/{key_hash}.json: an entry of the ledger. While `creating`, `task` is the document of the owner:
// if there is no such object yet, any process that finds this puts it there.
struct Record {
  std::string name;  // its place; not part of its content
  LedgerEntry entry;
  std::optional<Time> drawn_until;  // the latest time at which the id of an earlier owner was drawn
  std::optional<std::string> key;   // as the caller gave it
  std::string task_type;
  bool ready = false;
  std::optional<std::string> task;

  bool operator==(const Record&) const = default;
};

// requests/{namespace}/{digest of the key}.json
struct RequestDocument {
  PastRequest past;
  Time expires_at;
};

// queues/{namespace}/{queue}.json: of a queue with limits.
struct QueueDocument {
  RateState rate;
  std::int64_t claims = 0;  // that changed something here; counted so that no two contents are the same
};

// What is left of a deleted object, until no late writer can create it again, or ask for it.
struct Grave {
  Time at;
  Time keep_until;
  bool final = false;  // it is being removed: no one may overwrite it for a while
  std::optional<ClosingReport> report;
};

std::string write(const TaskDocument& document);
std::string write(const Record& record);
std::string write(const RequestDocument& request);
std::string write(const QueueDocument& queue);
std::string write(const Grave& grave);

TaskDocument read_task(std::string_view content);
Record read_record(std::string_view content);
RequestDocument read_request(std::string_view content);
QueueDocument read_queue(std::string_view content);
std::optional<Grave> read_grave(std::string_view content);  // nothing if it is none

}  // namespace hapax::s3
