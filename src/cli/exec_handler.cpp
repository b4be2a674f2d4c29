#include "cli/exec_handler.h"

#include <fmt/format.h>

#include <cstring>

#include "core/canonical_json.h"
#include "core/json.h"
#include "core/name.h"
#include "hapax/error.h"

namespace hapax {

namespace {

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

// Any bytes as UTF-8: invalid ones become question marks.
std::string as_utf8(std::string text) {
  if (is_valid_utf8(text)) return text;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

// What a handler that snoozes has printed: how long.
Duration snooze_of(const std::string& output) {
  const std::string text = without_line_end(output);
  if (text.empty()) return std::chrono::minutes(1);
  if (const auto duration = parse_duration(text)) return *duration;
  throw HandlerFailed(
      fmt::format("exit code {} asks for a snooze, and standard output must say how long, as \"5m\"", kSnoozeExitCode));
}

// The kept end of standard error may start inside a character.
std::string kept_errors(std::string text) {
  std::size_t start = 0;
  while (start < text.size() && start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) ++start;
  return without_line_end(as_utf8(text.substr(start)));
}

}  // namespace

std::string output_as_json(const std::string& output) {
  if (output.empty()) return {};
  try {
    return canonical_json(parse_json(output));
  } catch (const InvalidJson&) {
    std::string text;
    append_json_string(text, without_line_end(as_utf8(output)));
    return text;
  }
}

std::string result_of(const ChildOutcome& outcome) {
  if (outcome.cancelled) throw Cancelled();
  if (outcome.too_long)
    throw FinalError(fmt::format("the handler wrote more than {} MiB to standard output", kMaxOutput >> 20));
  if (outcome.signal == 0 && outcome.exit_code == 0) return output_as_json(outcome.output);
  if (outcome.signal == 0 && outcome.exit_code == kSnoozeExitCode) throw Snooze(snooze_of(outcome.output));
  std::string message = outcome.signal != 0
                            ? fmt::format("killed by signal {} ({})", outcome.signal, strsignal(outcome.signal))
                            : fmt::format("exit code {}", outcome.exit_code);
  const std::string errors = kept_errors(outcome.errors);
  if (!errors.empty()) message += ": " + errors;
  if (outcome.signal == 0 && outcome.exit_code == kFinalExitCode) throw FinalError(message);
  throw HandlerFailed(message);
}

}  // namespace hapax
