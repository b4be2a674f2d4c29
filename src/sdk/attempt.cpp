#include "sdk/attempt.h"

#include <algorithm>

#include "core/canonical_json.h"
#include "core/json.h"
#include "sdk/thrown.h"

namespace hapax {

std::string TaskContext::id() const { return task_.execution.id.to_string(); }
std::string TaskContext::type() const { return task_.execution.type; }
std::int32_t TaskContext::attempt() const { return task_.execution.attempt; }
std::string TaskContext::effect_key() const { return task_.execution.effect_key(); }

std::map<std::string, std::string> TaskContext::headers() const {
  std::map<std::string, std::string> headers;
  if (!task_.execution.headers) return headers;
  for (const auto& [name, value] : parse_json(*task_.execution.headers).members) headers.emplace(name, value.text);
  return headers;
}
bool TaskContext::cancel_requested() const { return task_.cancel_requested || task_.is_over(); }

namespace detail {

namespace {

// Counted by the local clock: the lease may come from a server with another clock.
std::chrono::steady_clock::time_point end_of(const Execution& claimed) {
  std::optional<Duration> time = claimed.timeout;
  if (claimed.deadline_at && claimed.started_at) {
    const Duration rest = std::max(*claimed.deadline_at - *claimed.started_at, Duration(0));
    time = time ? std::min(*time, rest) : rest;
  }
  constexpr Duration kNever = std::chrono::days(3650);
  const auto never = std::chrono::steady_clock::time_point::max();
  return time && *time < kNever ? std::chrono::steady_clock::now() + *time : never;
}

}  // namespace

RunningTask::RunningTask(Claimed claimed)
    : execution(std::move(claimed.execution)),
      events(std::move(claimed.events)),
      token{execution.id, execution.attempt, *execution.lease_secret},
      claimed_at(Steady::now()),
      ends_at(end_of(execution)) {}

Time RunningTask::now() const {
  return *execution.started_at + std::chrono::duration_cast<Duration>(Steady::now() - claimed_at);
}

const DeclaredTask* declared_for(const std::map<std::string, DeclaredTask>& tasks, const std::string& type) {
  auto declared = tasks.find(type);
  if (declared == tasks.end()) declared = tasks.find(std::string(kAnyType));
  return declared == tasks.end() ? nullptr : &declared->second;
}

Report run_handler(const DeclaredTask& declared, RunningTask& task, const std::string& name_space) {
  Report report{task.token, Report::Completed{}, name_space};
  if (task.cancel_requested) {  // while it was queued here: cancelled, or taken by another worker
    report.outcome = Report::Failed{{std::string(kCancelled), "it was cancelled before it started"}, true};
    return report;
  }
  try {
    TaskContext context = task.context();
    const std::string result = declared.handler(context, task.execution.input);
    if (!result.empty()) report.outcome = Report::Completed{canonical_json(parse_json(result))};
  } catch (const FinalError& error) {
    report.outcome = Report::Failed{thrown(error), false};
  } catch (const Cancelled& error) {
    report.outcome = Report::Failed{presentable_error(std::string(kCancelled), error.what()), true};
  } catch (const std::exception& error) {
    report.outcome = Report::Failed{thrown(error), true};
  } catch (...) {
    report.outcome = Report::Failed{{"unknown", "the handler threw something that is no std::exception"}, true};
  }
  return report;
}

}  // namespace detail

}  // namespace hapax
