// Reads the turns that workers send into the engine's values. Throws InvalidField.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "engine/engine.h"
#include "http/parse_request.h"

namespace hapax::http {

struct TurnItem {
  std::string lease;               // as sent
  std::optional<FinishItem> step;  // that the turn follows
  TurnRequest turn;                // without its token, namespace and step
};

// {"turns":[{"lease","step":{…},"seen","commands":[…],"end":{…}}]} with 1 to 1000 turns. The steps of a turn are
// consecutive.
std::vector<TurnItem> parse_turns(Json document);

}  // namespace hapax::http
