#include "sdk/telling.h"

#include <fmt/format.h>

#include <iostream>

namespace hapax::detail {

namespace {

// What programs and people wrote, on one line.
std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

void Telling::add(Observer observer) {
  std::lock_guard lock(mutex_);
  observers_.push_back(std::move(observer));
}

bool Telling::is_unobserved() const {
  std::lock_guard lock(mutex_);
  return observers_.empty();
}

template <class Event>
void Telling::tell(std::function<void(const Event&)> Observer::* of, const Event& event) const {
  std::vector<std::function<void(const Event&)>> functions;
  {
    std::lock_guard lock(mutex_);
    for (const Observer& observer : observers_) {
      if (observer.*of) functions.push_back(observer.*of);
    }
  }
  for (const auto& function : functions) {
    try {
      function(event);
    } catch (...) {
      // What observes must not end what is observed.
    }
  }
}

void Telling::line(const std::string& text) const {
  const std::string line = "hapax: " + on_one_line(text);
  try {
    if (log_) return log_(line);
    std::cerr << line + "\n" << std::flush;
  } catch (...) {
    // Likewise.
  }
}

void Telling::tell(const AttemptCompleted& attempt) const { tell(&Observer::attempt_completed, attempt); }

void Telling::tell(const AttemptFailed& attempt) const {
  line(fmt::format("task '{}' {}: attempt {} failed{}: {}: {}", attempt.type, attempt.id, attempt.attempt,
                   attempt.is_final ? " for good" : "", attempt.error_type, attempt.message));
  tell(&Observer::attempt_failed, attempt);
}

void Telling::tell(const LeaseLost& lease) const {
  line(fmt::format("'{}' {}: the lease of attempt {} is lost: another attempt has it, or it is closed", lease.type,
                   lease.id, lease.attempt));
  tell(&Observer::lease_lost, lease);
}

void Telling::tell(const WorkflowStuck& workflow) const {
  line(fmt::format("workflow '{}' ({}) is stuck: {}: {}; it goes on with a worker whose code fits",
                   workflow.workflow_id, workflow.type, workflow.error_type, workflow.message));
  tell(&Observer::stuck, workflow);
}

void Telling::tell(const ServerAway& away) const {
  line("the store or server is away, and work waits for it: " + away.error);
  tell(&Observer::server_away, away);
}

void Telling::tell(const ServerBack& back) const {
  line(fmt::format("the store or server is back after {} ms", back.after.count()));
  tell(&Observer::server_back, back);
}

void Telling::tell(const UnknownType& unknown) const {
  line("this worker has no task '" + unknown.type + "' declared; it gives such tasks back for workers that have it");
  tell(&Observer::unknown_type, unknown);
}

}  // namespace hapax::detail
