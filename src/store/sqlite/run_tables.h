// The rows that workflows have beside their executions: run states, events, waits, signals. Over one connection, within
// a transaction that the caller began; a run is named by the seq of its execution.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/workflow.h"
#include "store/page.h"
#include "store/rules/rows.h"
#include "store/sqlite/rows.h"

namespace hapax::sqlite {

constexpr std::int32_t kAllEvents = std::numeric_limits<std::int32_t>::max();

class RunTables {
 public:
  explicit RunTables(Connection& connection);

  void load(Row& row);  // its run state
  void insert(const Row& row);
  void save(const Row& row);
  void erase(std::int64_t seq);  // with events, waits and signals

  std::optional<ExecutionId> latest(const std::string& name_space, const std::string& workflow_id);
  std::vector<ExecutionId> steps_of(const ExecutionId& run);

  void append(std::int64_t seq, const Event& event);
  std::vector<Event> events(std::int64_t seq, std::int64_t after, std::int32_t limit, PageBudget& budget);
  std::vector<Event> all_events(std::int64_t seq);
  void erase_events(std::int64_t seq);

  void put_wait(std::int64_t seq, const Wait& wait);
  std::vector<Wait> waits_of(std::int64_t seq);  // by step
  std::vector<Wait> waits_on(const ExecutionId& execution);
  void erase_wait(std::int64_t seq, std::int32_t step);
  void erase_waits(std::int64_t seq);

  void put_signal(std::int64_t seq, const Event& signal);
  std::optional<Event> take_signal(std::int64_t seq, const std::string& name);
  bool signals_are_sound(std::int64_t seq);

 private:
  Statement load_, insert_, save_, erase_, latest_, steps_;
  Statement append_, events_, erase_events_;
  Statement put_wait_, waits_of_, waits_on_, erase_wait_, erase_waits_;
  Statement put_signal_, find_signal_, signals_, erase_signal_, erase_signals_;
};

}  // namespace hapax::sqlite
