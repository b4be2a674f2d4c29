#include "store/s3/documents/documents.h"

#include <fmt/format.h>

#include "store/s3/documents/archive.h"
#include "store/s3/documents/names.h"

namespace hapax::s3 {

void malformed(std::string_view member) {
  throw Failure(Failure::Code::corrupt,
                fmt::format("the member {} of an object in the bucket is not what this program writes", member));
}

template <>
struct Words<Kind> {
  static constexpr auto kWords = std::to_array<std::string_view>({"task", "workflow"});
};
template <>
struct Words<Status> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"pending", "running", "suspended", "completed", "failed", "cancelled", "timed_out"});
};
template <>
struct Words<Strategy> {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"caller_provided", "strict", "contextual", "always_unique"});
};
template <>
struct Words<Scope::Tag> {
  static constexpr auto kWords = std::to_array<std::string_view>({"type", "queue", "global", "custom", "workflow"});
};
template <>
struct Words<Event::Kind> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"task",    "sleep",  "wait_signal", "child",       "side_effect",      "version",   "closed",
       "fired",   "signal", "completed",   "failed",      "cancelled",        "timed_out", "stuck",
       "resumed", "forked", "continued",   "cancel_step", "cancel_requested", "publish",   "send_signal"});
};
template <>
struct Words<ControlRequest::Action> {
  static constexpr auto kWords = std::to_array<std::string_view>({"cancel", "retry", "resume", "fork", "signal"});
};
template <>
struct Words<ControlOutcome::Kind> {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"done", "not_found", "not_retryable", "identity_taken", "not_open",
                                       "no_such_step", "failed_before", "key_conflict"});
};

}  // namespace hapax::s3

// Beside the types themselves, where the archive finds them.
namespace hapax {

template <class Archive>
void fields(Archive& archive, Wait& wait) {
  archive("run", wait.run);
  archive("step", wait.step);
  archive("signal", wait.signal);
  archive("until", wait.until);
  archive("on", wait.on);
}

template <class Archive>
void fields(Archive& archive, LeaseToken& token) {
  archive("execution", token.execution);
  archive("attempt", token.attempt);
  archive("secret", token.secret);
}

template <class Archive>
void fields(Archive& archive, ClosingReport& report) {
  archive("token", report.token);
  archive("said", report.said);
  archive("status", report.status);
  archive("name_space", report.name_space);
  archive("queue", report.queue);
  archive("had_concurrency_key", report.had_concurrency_key);
}

template <class Archive>
void fields(Archive& archive, ControlOutcome& outcome) {
  archive("kind", outcome.kind);
  archive("changed", outcome.changed);
  archive("status", outcome.status);
  archive("other", outcome.other);
  archive("execution", outcome.execution);
  archive("steps", outcome.steps);
}

template <class Archive>
void fields(Archive& archive, PastRequest& past) {
  archive("action", past.action);
  archive("target", past.target);
  archive("workflow_id", past.workflow_id);
  archive("parameters", past.parameters);
  archive("outcome", past.outcome);
}

}  // namespace hapax

namespace hapax::s3 {

template <class Archive>
void fields(Archive& archive, Waiter& waiter) {
  archive("run", waiter.run);
  archive("step", waiter.step);
}

template <class Archive>
void fields(Archive& archive, TaskDocument& document) {
  fields(archive, document.execution);
  archive("history", document.history);
  archive("waits", document.waits);
  archive("signals", document.signals);
  archive("waiters", document.waiters);
  archive("hints", document.hints);
  archive("mark", document.mark);
}

enum class RecordStatus : std::uint8_t { creating, ready };
template <>
struct Words<RecordStatus> {
  static constexpr auto kWords = std::to_array<std::string_view>({"creating", "ready"});
};

template <class Archive>
void fields(Archive& archive, Record& record) {
  LedgerEntry& entry = record.entry;
  RecordStatus status = record.ready ? RecordStatus::ready : RecordStatus::creating;
  std::string task_key = task_name(entry.owner);
  archive("key", record.key);
  archive("key_hash", entry.identity.hash);
  archive("task_id", entry.owner);
  archive("task_key", task_key);
  archive("created_at", entry.created_at);
  archive("drawn_until", record.drawn_until);
  archive("expires_at", entry.expires_at);
  archive("task_type", record.task_type);
  archive("input_hash", entry.input_hash);
  archive("status", status);
  archive("name_space", entry.name_space);
  archive("scope", entry.identity.scope);
  archive("strategy", entry.identity.strategy);
  archive("tombstone", entry.tombstone);
  archive("task", record.task);
  record.ready = status == RecordStatus::ready;
}

template <class Archive>
void fields(Archive& archive, RequestDocument& request) {
  archive("request", request.past);
  archive("expires_at", request.expires_at);
}

template <class Archive>
void fields(Archive& archive, QueueDocument& queue) {
  archive("full_at_ns", queue.rate.full_at_ns);
  archive("rate_count", queue.rate.rate.count);
  archive("rate_per_ms", queue.rate.rate.per);
  archive("rate_burst", queue.rate.rate.burst);
  archive("claims", queue.claims);
}

template <class Archive>
void fields(Archive& archive, Grave& grave) {
  archive("gone", grave.at);
  archive("keep_until", grave.keep_until);
  archive("final", grave.final);
  archive("report", grave.report);
}

std::string write(const TaskDocument& document) { return Writer::text(document); }
std::string write(const Record& record) { return Writer::text(record); }
std::string write(const RequestDocument& request) { return Writer::text(request); }
std::string write(const QueueDocument& queue) { return Writer::text(queue); }
std::string write(const Grave& grave) { return Writer::text(grave); }

TaskDocument read_task(std::string_view content) { return Reader::object<TaskDocument>(content); }
Record read_record(std::string_view content) { return Reader::object<Record>(content); }
RequestDocument read_request(std::string_view content) { return Reader::object<RequestDocument>(content); }
QueueDocument read_queue(std::string_view content) { return Reader::object<QueueDocument>(content); }

std::optional<Grave> read_grave(std::string_view content) {
  if (!content.starts_with(R"({"gone":)")) return std::nullopt;
  return Reader::object<Grave>(content);
}

}  // namespace hapax::s3
