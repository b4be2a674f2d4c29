// The rows that workflows have beside their executions: events, waits, signals. Within a transaction that the caller began.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/workflow.h"
#include "store/postgres/connection.h"
#include "store/workflow/run_rows.h"

namespace hapax::postgres {

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

void append_events(Connection& connection, const ExecutionId& run, const std::vector<Event>& events);
void erase_events(Connection& connection, const ExecutionId& run);
// What is sent here is received there.
void send_read_events(Connection& connection, const ExecutionId& run, std::int64_t after, std::int32_t limit);
std::vector<Event> receive_events(Connection& connection);

// The latest run of a workflow; its steps: tasks and children. As they are stored.
std::optional<ExecutionId> latest_run(Connection& connection, const std::string& name_space,
                                      const std::string& workflow_id);
std::vector<ExecutionId> steps_of(Connection& connection, const ExecutionId& run);

void put_wait(Connection& connection, const Wait& wait);
std::vector<Wait> waits_of(Connection& connection, const ExecutionId& run);        // by step
std::vector<Wait> waits_on(Connection& connection, const ExecutionId& execution);  // by run and step
void erase_wait(Connection& connection, const ExecutionId& run, std::int32_t step);
void erase_waits(Connection& connection, const ExecutionId& run);

void put_signal(Connection& connection, const ExecutionId& run, const Event& signal);
std::optional<Event> take_signal(Connection& connection, const ExecutionId& run, const std::string& name);

// All that these runs have.
void erase_runs(Connection& connection, const std::vector<ExecutionId>& runs);

}  // namespace hapax::postgres
