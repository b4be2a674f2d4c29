#include "sdk/errors.h"

#include "client/remote_engine.h"
#include "wire/error_code.h"

namespace hapax::detail {

namespace {

const char* code_of(Failure::Code code) {
  switch (code) {
    case Failure::Code::unavailable: return "StoreUnavailable";
    case Failure::Code::outcome_unknown: return "OutcomeUnknown";
    case Failure::Code::corrupt: return "StoreCorrupt";
    case Failure::Code::misuse: return "InvalidRequest";
    case Failure::Code::stopped: return "ShuttingDown";
  }
  return "StoreUnavailable";
}

}  // namespace

Error to_error(const Refusal& refusal, Kind of) {
  ErrorDetails details;
  details.pointer = refusal.pointer;
  if (refusal.existing) {
    const Execution& existing = *refusal.existing;
    details.existing_execution_id = existing.id.to_string();
    details.status = to_string(existing.status);
    if (refusal.code == Refusal::Code::task_already_completed) {
      details.completed_at = existing.finished_at;
      details.result_json = existing.result;
    }
    if (refusal.code == Refusal::Code::idempotency_conflict) {
      if (refusal.input_hash) details.input_hash = refusal.input_hash->to_string();
      details.existing_input_hash = existing.input_hash.to_string();
    }
  }
  return Error(std::string(wire::to_string(refusal.code, of)), refusal.message, std::move(details));
}

Error to_error(const InvalidField& error) {
  ErrorDetails details;
  details.pointer = error.pointer();
  if (error.place() == InvalidField::Place::parameter) details.parameter = error.name();
  if (error.place() == InvalidField::Place::header) details.header = error.name();
  return Error(error.code(), error.sentence(), std::move(details));
}

Error to_error(const Failure& failure) {
  if (const auto* invalid = dynamic_cast<const InvalidField*>(&failure)) return to_error(*invalid);
  if (const auto* refusal = dynamic_cast<const RemoteRefusal*>(&failure))
    return Error(refusal->word(), refusal->what());
  return Error(code_of(failure.code()), failure.what(), {}, failure.safe_to_retry());
}

Error to_error(const ControlOutcome& outcome, std::string_view target, Kind of) {
  ErrorDetails details;
  if (outcome.kind == ControlOutcome::Kind::no_such_step) details.pointer = "/from_step";
  if (outcome.other) details.existing_execution_id = outcome.other->to_string();
  return Error(std::string(wire::to_string(outcome.kind, of)), wire::describe(outcome.kind, target, of, outcome.steps),
               std::move(details));
}

}  // namespace hapax::detail
