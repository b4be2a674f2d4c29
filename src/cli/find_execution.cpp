#include "cli/find_execution.h"

#include <fmt/format.h>

#include "cli/submission_flags.h"
#include "core/name.h"

namespace hapax {

std::optional<Execution> find_execution(Engine& engine, const std::string& name_space, const std::string& text) {
  if (const auto id = ExecutionId::parse(text)) {
    if (auto found = engine.find(name_space, *id)) return found;
  }
  return engine.find_workflow(name_space, text);
}

void require_workflow_id(const std::string& flag, const std::string& text) {
  require_utf8(flag, text);
  if (const auto wrong = check_idempotency_key(text)) throw CommandError(kUsage, flag + " " + *wrong);
}

std::vector<Event> read_history(Engine& engine, const std::string& name_space, const ExecutionId& run) {
  constexpr std::int32_t kPage = 1000;
  std::vector<Event> events;
  while (true) {
    const auto page = engine.history(name_space, run, events.empty() ? 0 : events.back().no, kPage);
    if (page.empty()) return events;
    events.insert(events.end(), page.begin(), page.end());
  }
}

CommandError workflow_not_found(const std::string& workflow_id) {
  return CommandError(
      kNotFound,
      fmt::format("there is no workflow {}; is it another namespace's, or past its retention?", workflow_id));
}

}  // namespace hapax
