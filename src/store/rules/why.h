// Why an execution does not run. The rule stands here once; each store looks up what it asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/rate.h"
#include "core/why.h"
#include "store/rules/rows.h"

namespace hapax::rules {

// What the rule wants to know, as of one moment. Every answer is bounded, whatever else is stored.
class WhyRows {
 public:
  // At most so many executions of a queue are counted.
  static constexpr std::int32_t kMostCounted = 10'000;

  virtual ~WhyRows() = default;

  virtual Time now() = 0;
  virtual const QueuePolicies& policies() = 0;
  virtual std::optional<Execution> find(const ExecutionId& id) = 0;

  // Of the queue of an execution, those of its kind.
  virtual std::int64_t count_before(const Execution& pending) = 0;  // due, and claimed before it
  virtual std::int64_t count_running(const Execution& pending) = 0;
  virtual std::vector<ExecutionId> running_with_key(const Execution& pending, std::int32_t limit) = 0;
  virtual RateState rate(const Execution& pending) = 0;
  virtual std::int64_t count_closed_since(const Execution& pending, Time since) = 0;
  // Workers seen after `since` that claim from that queue what is of that kind, those that claim its type first. May
  // leave out others where some claim its type. Nothing: there are too many to look at.
  virtual std::optional<std::vector<WorkerInfo>> claimers(const Execution& pending, Time since, std::int32_t limit) = 0;

  // Of a run.
  virtual std::vector<Wait> waits_of(const ExecutionId& run) = 0;
  virtual std::vector<ExecutionId> open_steps_of(const ExecutionId& run, std::int32_t limit) = 0;
};

// Nothing: there is no such execution in that namespace.
std::optional<Why> why(WhyRows& rows, const std::string& name_space, const ExecutionId& id);

}  // namespace hapax::rules
