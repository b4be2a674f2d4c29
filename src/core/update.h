// Updates of a workflow: signals that its code answers.
//
// An update arrives as a signal of a name of its own, whose payload has the request key beside what was sent. The
// answer is a value that the code publishes under that key. So history, replay, fork, resume and continue-as-new treat
// both as what they are, and no worker protocol needs a word for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/execution.h"

namespace hapax {

// Names of signals and values that are Hapax's own begin with this.
inline constexpr std::string_view kInternalName = "hapax.";
inline constexpr std::size_t kMaxUpdateName = 200;  // in bytes

std::string update_signal(std::string_view update);       // the signal's name
std::string update_answer(std::string_view request_key);  // the published value's name
bool is_update_answer(std::string_view value_name);

// The signal's payload, canonical JSON: {"payload","request_key"}.
std::string write_update(std::string_view request_key, const std::optional<std::string>& payload);
struct ReceivedUpdate {
  std::string request_key;
  std::string payload;  // JSON; empty: nothing
};
std::optional<ReceivedUpdate> read_update(const std::string& signal_payload);

// How the code answered: {"result"?} or {"error":{"type","message"}}.
struct UpdateAnswer {
  std::optional<std::string> result;  // JSON
  std::optional<AttemptError> error;  // it was refused

  bool operator==(const UpdateAnswer&) const = default;
};
std::string write_answer(const UpdateAnswer& answer);
std::optional<UpdateAnswer> read_answer(const std::string& value);

// What is wrong with a signal's or value's name that comes from outside, as the end of a sentence.
std::optional<std::string> check_signal_name(std::string_view name);
// The same of an update's name.
std::optional<std::string> check_update_name(std::string_view name);

}  // namespace hapax
