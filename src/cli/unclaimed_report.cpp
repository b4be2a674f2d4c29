#include "cli/unclaimed_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax {

Table unclaimed_table(std::span<const Unclaimed> unclaimed, Time now) {
  Table table({"nobody claims", "kind", "queue", ">waits for", "hapax why"});
  for (const Unclaimed& each : unclaimed) {
    table.add({Cell(each.type, Colour::yellow), each.kind == Kind::workflow ? "workflow" : "task", each.queue,
               format_age(now - each.run_at), each.example.to_string()});
  }
  return table;
}

Finding judge_unclaimed(std::string_view name_space, std::span<const Unclaimed> unclaimed, Time now) {
  if (unclaimed.empty()) {
    return {Finding::Verdict::ok, "unclaimed",
            fmt::format("nothing has waited for a minute in namespace {} that no worker claims", name_space)};
  }
  constexpr std::size_t kMostNamed = 10;
  std::string types;
  for (std::size_t i = 0; i < std::min(unclaimed.size(), kMostNamed); ++i) {
    const Unclaimed& each = unclaimed[i];
    types += fmt::format("{}{} {} in the queue {} (for {}, hapax why {})", i > 0 ? ", " : "",
                         each.kind == Kind::workflow ? "workflows" : "tasks", each.type, each.queue,
                         format_age(now - each.run_at), each.example.to_string());
  }
  if (unclaimed.size() > kMostNamed) types += fmt::format(" and {} more", unclaimed.size() - kMostNamed);
  return {Finding::Verdict::warn, "unclaimed",
          fmt::format("nobody has claimed for a minute what waits in namespace {}: {}. Start a worker that has them; "
                      "hapax workers shows who claims what",
                      name_space, types)};
}

}  // namespace hapax
