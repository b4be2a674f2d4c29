#include "sdk/attempt.h"

#include <algorithm>
#include <utility>

#include "core/canonical_json.h"
#include "core/json.h"
#include "core/notes.h"
#include "engine/check_request.h"
#include "sdk/app_state.h"
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

App TaskContext::app() const {
  if (task_.app) {
    if (auto state = task_.app->weak_from_this().lock()) return App(std::move(state));
  }
  throw Error("ShuttingDown", "the app of this handler is being closed");
}

void TaskContext::progress_json(std::string_view json) const {
  std::string canonical = canonical_json(detail::parse_document(std::string(json)));
  if (canonical.size() > kMaxProgressBytes) {
    throw Error("InvalidRequest", "progress is for a few words: at most 64 KiB of JSON", {.pointer = "/progress"});
  }
  task_.say_progress(std::move(canonical));
}
void TaskContext::log(std::string_view line) const { task_.say_line(std::string(line)); }

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

RunningTask::RunningTask(Claimed claimed, AppState* app)
    : app(app),
      execution(std::move(claimed.execution)),
      events(std::move(claimed.events)),
      token{execution.id, execution.attempt, *execution.lease_secret},
      claimed_at(Steady::now()),
      ends_at(end_of(execution)) {}

Time RunningTask::now() const {
  return *execution.started_at + std::chrono::duration_cast<Duration>(Steady::now() - claimed_at);
}

void RunningTask::say_progress(std::string json) const {
  std::lock_guard lock(notes_mutex_);
  progress_ = std::move(json);
}

void RunningTask::say_line(std::string line) const {
  line = presentable(std::move(line), kMaxLogBytes);
  std::lock_guard lock(notes_mutex_);
  log_bytes_ += line.size();
  log_.push_back(std::move(line));
  while (log_bytes_ > kMaxLogBytes) {
    log_bytes_ -= log_.front().size();
    log_.erase(log_.begin());
  }
}

bool RunningTask::has_unsent_notes() const {
  std::lock_guard lock(notes_mutex_);
  return progress_ || !log_.empty();
}

void RunningTask::take_notes(Extension& extension) {
  std::lock_guard lock(notes_mutex_);
  extension.progress = std::exchange(progress_, std::nullopt);
  extension.log = std::exchange(log_, {});
  log_bytes_ = 0;
}

void RunningTask::put_back_notes(const Extension& extension) {
  std::vector<std::string> newer;
  {
    std::lock_guard lock(notes_mutex_);
    if (!progress_) progress_ = extension.progress;
    newer = std::exchange(log_, {});
    log_bytes_ = 0;
  }
  for (const std::string& line : extension.log) say_line(line);
  for (const std::string& line : newer) say_line(line);
}

const DeclaredTask* declared_for(const std::map<std::string, DeclaredTask>& tasks, const std::string& type) {
  auto declared = tasks.find(type);
  if (declared == tasks.end()) declared = tasks.find(std::string(kAnyType));
  return declared == tasks.end() ? nullptr : &declared->second;
}

namespace {

AttemptError with_details(AttemptError error, const std::string& details_json) {
  if (!details_json.empty()) error.details = canonical_json(parse_document(details_json));
  return error;
}

Duration in_bounds(std::chrono::milliseconds time) {
  return std::clamp<Duration>(time, Duration(0), std::chrono::days(36'525));
}

}  // namespace

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
    report.outcome = Report::Failed{with_details(thrown(error), error.details_json()), false};
  } catch (const RetryLater& error) {
    report.outcome = Report::Failed{with_details(thrown(error), error.details_json()), true, in_bounds(error.after())};
  } catch (const Snooze& snooze) {
    report.outcome = Report::Snoozed{in_bounds(snooze.by())};
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
