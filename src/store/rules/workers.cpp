#include "store/rules/workers.h"

#include <algorithm>

namespace hapax::rules {

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool claims_queue_of(const WorkerInfo& worker, const Execution& execution) {
  const bool of_kind = execution.kind == Kind::workflow ? worker.workflows : worker.tasks;
  return of_kind && worker.name_space == execution.name_space && has(worker.queues, execution.queue);
}

bool claims(const WorkerInfo& worker, const Execution& execution) {
  return claims_queue_of(worker, execution) && (worker.types.empty() || has(worker.types, execution.type));
}

std::string join_names(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "\n" : "") + name + "\n";
  return joined;
}

std::vector<std::string> split_names(std::string_view joined) {
  std::vector<std::string> names;
  for (std::size_t begin = 1; begin < joined.size();) {
    const std::size_t end = std::min(joined.find('\n', begin), joined.size());
    names.emplace_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string within_names(std::string_view name) { return "\n" + std::string(name) + "\n"; }

}  // namespace hapax::rules
