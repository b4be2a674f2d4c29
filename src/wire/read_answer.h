// What a server answered, read back into the engine's values: the other side of write_answer. Everything here throws
// Failure::corrupt for an answer that is not of the documented shape.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "engine/engine.h"

namespace hapax::wire {

// Without the lease secret, which an execution's own JSON never has.
Execution read_execution(const Json& document);

// An execution with the lease that its claim carries.
Execution read_claim(const Json& document);

// A receipt, or the error body of a refused submission.
SubmitResult read_submit_result(const Json& document);

ExtendOutcome read_extend_outcome(const Json& document);
FinishOutcome read_finish_outcome(const Json& document);
ControlOutcome read_control_outcome(const Json& document);
QueueView read_queue(const Json& document);
TypeView read_type(const Json& document);
FoundIdentity read_identity(const Json& document);

// Says which member is at fault.
[[noreturn]] void malformed(std::string_view member);

// A member that must be there, read by `read`.
template <class Read>
auto read_member(const Json& document, std::string_view member, Read read) {
  const Json* value = document.find(member);
  if (!value) malformed(member);
  return read(*value);
}

// The items of an array that must be there, each read by `read`.
template <class Read>
auto read_all(const Json& document, std::string_view member, Read read) {
  const Json* array = document.find(member);
  if (!array || !array->is(Json::Kind::array)) malformed(member);
  std::vector<decltype(read(document))> values;
  values.reserve(array->items.size());
  for (const Json& item : array->items) values.push_back(read(item));
  return values;
}

}  // namespace hapax::wire
