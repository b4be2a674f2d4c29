// Which of the shortcuts in this folder are taken. Each stands for a rule of store/rules, which decides alone where the
// shortcut is off: the answers are the same, only slower. For tests: `fast=none`, `fast=all` (the default) or a list of
// names such as `fast=create,take_due` in the query of the URL.
#pragma once

#include <string_view>

namespace hapax::postgres::fast {

struct Switches {
  bool create = true;
  bool create_started = true;  // for one waiting claim that takes all; only with create
  bool take_due = true;
  bool complete = true;
  bool complete_by_spot = true;  // of what take_due has claimed
  bool commit_turns = true;
  bool done_steps = true;  // turns with steps that were completed within them; only with commit_turns
};

// Throws Failure::misuse for a name that there is none of.
Switches parse_switches(std::string_view text);

}  // namespace hapax::postgres::fast
