// What a client asks, from JSON into the engine's values, and checked (engine/check_request.h). The other side of
// write_request.h. Everything here throws InvalidField; `at` is where a value stands in its document.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/field.h"
#include "core/json.h"
#include "engine/engine.h"

namespace hapax::wire {

// A workflow's key is its "workflow_id", which need not be there: a header or a rule may give it.
SubmitRequest read_submit(Json document, const std::string& at = "", Kind kind = Kind::task);

// {"tasks":[…]} with 1 to 1000 items, which are not looked into.
std::vector<Json> read_batch(Json document, std::string_view items);

ClaimCall read_claim_call(const Json& document, std::string name_space);

struct Heartbeat {
  struct Beat {
    std::string lease;                    // as sent; one that is no lease token is lost
    std::optional<std::string> progress;  // JSON
    std::vector<std::string> log;
  };
  std::vector<Beat> leases;
  Duration lease{60'000};
};
Heartbeat read_heartbeat(const Json& document);
std::vector<std::string> read_return(const Json& document);  // the leases to give back, as sent

struct FinishItem {
  std::string lease;  // as sent
  decltype(Report::outcome) outcome;
};
std::vector<FinishItem> read_finish(const Json& document);
FinishItem read_finish_item(const Json& document, const std::string& at);

// The members of an error, as a worker reports it.
AttemptError read_error(FieldReader& fields);

// A turn as a worker sends it. What only the lease's text says is left to the caller.
struct TurnItem {
  std::string lease;
  std::optional<FinishItem> step;  // that ends with the turn
  TurnRequest turn;
};
std::vector<TurnItem> read_turns(Json document);

// The parameters of a cancel, a fork and a signal.
void read_cancel(const Json& document, ControlRequest& request);
void read_fork(const Json& document, ControlRequest& request);
void read_signal(const Json& document, ControlRequest& request);
std::optional<std::string> read_update(const Json& document);  // its payload

Backfill read_backfill(const Json& document);

}  // namespace hapax::wire
