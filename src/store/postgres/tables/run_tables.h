// The rows that workflows have beside their executions: events, waits, signals. Within a transaction that the caller
// began.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/workflow.h"
#include "store/postgres/connection/connection.h"
#include "store/postgres/tables/rows.h"
#include "store/rules/rows.h"

namespace hapax::postgres {

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

// Frequent writes, gathered so that each table is written once for all runs of a batch. Must be written before anything
// else is done to these tables.
class RunChanges {
 public:
  RunChanges();

  void append(const ExecutionId& run, const std::vector<Event>& events);
  void erase_waits(const ExecutionId& run);
  void write(Connection& connection);

 private:
  Batch appended_;
  std::vector<ExecutionId> waitless_;
};

void erase_events(Connection& connection, const ExecutionId& run);
// What is sent here is received there.
void send_read_events(Connection& connection, const ExecutionId& run, std::int64_t after, std::int32_t limit,
                      std::int64_t bytes);
std::vector<Event> receive_events(Connection& connection);
// Of each of these runs, in order, the events after those that its last turn has seen.
void send_read_news(Connection& connection, const std::vector<const Execution*>& runs);
std::vector<std::vector<Event>> receive_news(Connection& connection, std::size_t runs);

// The latest run of a workflow, as it is stored; none of `erased`, which are to be deleted.
std::optional<ExecutionId> latest_run(Connection& connection, std::int32_t first_shelf, const std::string& name_space,
                                      const std::string& workflow_id, const std::vector<ExecutionId>& erased);

void put_wait(Connection& connection, const Wait& wait);
std::vector<Wait> waits_of(Connection& connection, const ExecutionId& run);        // by step
std::vector<Wait> waits_on(Connection& connection, const ExecutionId& execution);  // by run and step
void erase_wait(Connection& connection, const ExecutionId& run, std::int32_t step);

void put_signal(Connection& connection, const ExecutionId& run, const Event& signal);
std::optional<Event> take_signal(Connection& connection, const ExecutionId& run, const std::string& name);

// All that these runs have; their closed steps stay, as anybody's.
void erase_runs(Connection& connection, const std::vector<ExecutionId>& runs);

}  // namespace hapax::postgres
