#include "core/execution.h"

#include <array>

namespace hapax {

std::string_view to_string(Kind kind) { return kind == Kind::task ? "task" : "workflow"; }

namespace {

constexpr std::array<std::string_view, 7> kStatusWords{"pending", "running",   "suspended", "completed",
                                                       "failed",  "cancelled", "timed_out"};

}  // namespace

std::string_view to_string(Status status) { return kStatusWords.at(static_cast<std::size_t>(status)); }

std::optional<Status> parse_status(std::string_view text) {
  for (std::size_t i = 0; i < kStatusWords.size(); ++i) {
    if (kStatusWords[i] == text) return static_cast<Status>(i);
  }
  return {};
}

std::int64_t Execution::payload_bytes() const {
  const auto bytes_of = [](const AttemptError& each) { return std::ssize(each.type) + std::ssize(each.message); };
  std::int64_t bytes = std::ssize(input) + (result ? std::ssize(*result) : 0) + (error ? bytes_of(*error) : 0);
  for (const AttemptRecord& record : failed_attempts) bytes += bytes_of(record.error) + std::ssize(record.worker);
  return bytes;
}

std::optional<Time> Execution::due_at() const {
  if (is_closed(status)) return {};
  std::optional<Time> due = deadline_at;
  if (status == Status::running) {
    for (const std::optional<Time>& end : {lease_expires_at, attempt_ends_by, cancel_by}) {
      if (end && (!due || *end < *due)) due = end;
    }
  }
  if (status == Status::suspended && run.wake_at && (!due || *run.wake_at < *due)) due = run.wake_at;
  return due;
}

}  // namespace hapax
