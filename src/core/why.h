// Why an execution does not run: what holds it back now, for people and for programs.
#pragma once

#include <string>
#include <vector>

namespace hapax {

struct Why {
  std::string state;                   // its status
  std::vector<std::string> sentences;  // for people; the first one matters most
  std::vector<std::string> because;    // for programs: JSON objects, each with its "code", in the same order

  bool operator==(const Why&) const = default;
};

}  // namespace hapax
