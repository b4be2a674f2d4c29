#include "store/postgres/fast/switches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/failure.h"

namespace hapax::postgres::fast {

namespace {

constexpr std::pair<std::string_view, bool Switches::*> kSwitches[] = {
    {"create", &Switches::create},
    {"create_started", &Switches::create_started},
    {"take_due", &Switches::take_due},
    {"complete", &Switches::complete},
    {"complete_by_spot", &Switches::complete_by_spot},
    {"commit_turns", &Switches::commit_turns},
    {"done_steps", &Switches::done_steps},
};

}  // namespace

Switches parse_switches(std::string_view text) {
  Switches switches;
  if (text == "all") return switches;
  for (const auto& [name, member] : kSwitches) switches.*member = false;
  if (text == "none") return switches;
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view named = text.substr(0, comma);
    const auto* found =
        std::find_if(std::begin(kSwitches), std::end(kSwitches), [&](const auto& each) { return each.first == named; });
    if (found == std::end(kSwitches)) {
      throw Failure(Failure::Code::misuse, "the PostgreSQL URL: fast has no \"" + std::string(named) + "\"");
    }
    switches.*(found->second) = true;
    if (comma == text.size()) return switches;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace hapax::postgres::fast
