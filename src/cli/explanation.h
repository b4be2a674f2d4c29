// What a submission would meet and why, as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace hapax {

// Everything known about it. `result` comes from a dry run with on_duplicate "return", so that a duplicate shows
// itself.
struct ExplanationFacts {
  SubmitRequest request;
  SubmitResult result;
  TypeView type;
  QueueView queue;
  std::optional<FoundIdentity> found;   // by its key, if it has one
  std::optional<Execution> superseded;  // the owner that would be superseded, if it still exists
  Time now;
};

struct Explanation {
  struct Line {
    std::string about, says;
  };

  std::string outcome;  // "create", "duplicate", "conflict", "already_exists", "invalid"
  std::vector<Line> lines;
};

Explanation explain(const ExplanationFacts& facts);

}  // namespace hapax
