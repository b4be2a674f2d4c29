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

std::int64_t AttemptError::payload_bytes() const {
  return std::ssize(type) + std::ssize(message) + (stack ? std::ssize(*stack) : 0) +
         (details ? std::ssize(*details) : 0);
}

std::int64_t Execution::payload_bytes() const {
  const auto bytes_if = [](const std::optional<std::string>& text) { return text ? std::ssize(*text) : 0; };
  std::int64_t bytes = std::ssize(input) + bytes_if(result) + bytes_if(notes) + (error ? error->payload_bytes() : 0);
  for (const AttemptRecord& record : failed_attempts) {
    bytes += record.error.payload_bytes() + std::ssize(record.worker);
  }
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
  if (kind == Kind::workflow && cancel_by && (!due || *cancel_by < *due)) due = cancel_by;
  if (status == Status::suspended && run.wake_at && (!due || *run.wake_at < *due)) due = run.wake_at;
  return due;
}

}  // namespace hapax
