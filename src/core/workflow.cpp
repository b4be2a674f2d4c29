#include "core/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "core/hash.h"
#include "core/invariant.h"

namespace hapax {

namespace {

constexpr std::array<std::string_view, 21> kEventWords{
    "task",    "sleep",  "wait_signal", "child",       "side_effect",      "version",   "closed",
    "fired",   "signal", "completed",   "failed",      "cancelled",        "timed_out", "stuck",
    "resumed", "forked", "continued",   "cancel_step", "cancel_requested", "publish",   "send_signal"};

}  // namespace

std::int64_t Event::payload_bytes() const {
  return std::ssize(name) + (key ? std::ssize(*key) : 0) + (value ? std::ssize(*value) : 0) +
         (error ? error->payload_bytes() : 0);
}

std::string_view to_string(Event::Kind kind) { return kEventWords.at(static_cast<std::size_t>(kind)); }

std::optional<Event::Kind> parse_event_kind(std::string_view text) {
  for (std::size_t i = 0; i < kEventWords.size(); ++i) {
    if (kEventWords[i] == text) return static_cast<Event::Kind>(i);
  }
  return {};
}

std::string step_name(const ExecutionId& run, std::string_view type, std::int32_t step) {
  return fmt::format("task-{}:{}:{}", run.to_string(), type, step);
}

// Nothing else has ids of that version.
bool is_step_id(const ExecutionId& id) { return id.bytes[6] >> 4 == 8; }

ExecutionId step_id(const ExecutionId& run, std::string_view type, std::int32_t step) {
  const auto digest = sha256(step_name(run, type, step));
  ExecutionId id = run;
  std::copy_n(digest.begin(), 10, id.bytes.begin() + 6);                 // the first six bytes are the run's time
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x80);  // version 8: made by our own rule
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return id;
}

std::int32_t cancelled_step(const Event& command) {
  std::int32_t step = 0;
  const std::string text = command.value.value_or("");
  std::from_chars(text.data(), text.data() + text.size(), step);
  return step;
}

std::string child_workflow_id(const ExecutionId& run, std::int32_t step) {
  return fmt::format("child-{}:{}", run.to_string(), step);
}

std::string fork_workflow_id(std::string_view workflow_id, std::string_view request_key) {
  std::string id = fmt::format("{}:fork-{}", workflow_id, request_key);
  if (id.size() > 255) id = "fork-" + InputHash{sha256(id)}.to_string();
  return id;
}

namespace {

bool is_of(const CommittedTurn& turn, const LeaseToken& token) {
  return turn.attempt == token.attempt &&
         std::equal(turn.secret.begin(), turn.secret.end(), token.secret.bytes.begin());
}

}  // namespace

void remember_turn(Execution& run) {
  invariant(run.lease_secret.has_value(), "a turn is committed under its lease");
  CommittedTurn turn{run.attempt, {}, run.status};
  std::copy_n(run.lease_secret->bytes.begin(), turn.secret.size(), turn.secret.begin());
  auto& turns = run.run.committed;
  if (turns.size() >= kRememberedTurns) turns.erase(turns.begin());
  turns.push_back(turn);
}

std::optional<Status> answer_before(const Execution& run, const LeaseToken& turn) {
  for (const CommittedTurn& committed : run.run.committed) {
    if (is_of(committed, turn)) return committed.status;
  }
  return std::nullopt;
}

namespace {

// The error type that workers use when the failure of a step ended the workflow.
constexpr std::string_view kStepFailed = "StepFailed";

bool is_failure(const Event& event) {
  return event.kind == Event::Kind::closed && event.step > 0 && event.status != Status::completed;
}

// The number of the last command, or of the last one before `before`.
std::int64_t last_command(const std::vector<Event>& events, std::int64_t before) {
  std::int64_t last = 0;
  for (const Event& event : events) {
    if (is_command(event.kind) && event.no < before) last = event.no;
  }
  return last;
}

}  // namespace

namespace {

// The last command that the code asked for before the failure that ended the workflow; INT64_MAX: none.
std::int64_t asked_before_the_end(const std::vector<Event>& events) {
  std::int64_t last_failure = 0;
  bool by_step = false;
  for (const Event& event : events) {
    if (is_failure(event)) last_failure = event.no;
    if (!is_command(event.kind) && !is_of_step(event.kind)) by_step = event.error && event.error->type == kStepFailed;
  }
  const std::int64_t last = last_command(events, INT64_MAX);
  if (last_failure > last) return last;
  return by_step && last_failure > 0 ? last_command(events, last_failure) : INT64_MAX;
}

// A signal whose wait was removed waits again: as the event of step 0 that recorded it, if there was one.
void give_back(const Event& taken, const std::vector<Event>& events, Rewound& rewound) {
  for (const Event& event : events) {
    if (taken.key && std::to_string(event.no) == *taken.key) {
      rewound.signals.push_back(event);
      return;
    }
  }
  Event signal = taken;
  signal.step = 0;
  rewound.signals.push_back(signal);
  rewound.kept.push_back(std::move(signal));
}

}  // namespace

Rewound rewind(const std::vector<Event>& events) {
  Rewound rewound;
  const std::int64_t asked = asked_before_the_end(events);
  if (asked == INT64_MAX) {
    rewound.kept = events;
    return rewound;
  }
  rewound.changed = true;
  std::int32_t steps = 0;  // that stay
  for (const Event& event : events) {
    if (is_command(event.kind) && event.no <= asked) steps = event.step;
  }
  for (const Event& event : events) {
    if (is_failure(event) && event.no > asked) continue;
    if (event.step > steps && event.kind == Event::Kind::signal) {
      give_back(event, events, rewound);
    } else if (event.step <= steps || event.kind == Event::Kind::forked) {
      rewound.kept.push_back(event);
    }
  }
  return rewound;
}

}  // namespace hapax
