// Answers that several routes give.
#pragma once

#include <string>
#include <vector>

#include "core/json_writer.h"
#include "engine/engine.h"
#include "http/message.h"
#include "http/parse_request.h"

namespace hapax::http {

inline constexpr std::string_view kLeaseLost = "LeaseLost";
inline constexpr std::string_view kLeaseLostMessage =
    "The lease is not that of the running attempt: the attempt was taken away, or its task is closed. Nothing was "
    "changed.";
inline constexpr std::string_view kTurnLostMessage =
    "The step has ended, but its workflow is not where this turn believes it to be: its next turn is there to be "
    "claimed.";

// 201 with Location: `collection` ends with a slash, `name` is not encoded.
Response created_response(std::string_view collection, std::string_view name, std::string body);

// The header Idempotency-Replayed: the answer says nothing new.
Response replayed_response(int status, std::string body);

// 201 created, 200 duplicate or dry run, 4xx refused.
Response submit_response(std::vector<SubmitResult> results);

// A page of executions, newest first. It reads the store, so it runs on the read pool.
Response list_response(Engine& engine, ListRequest request);

Response why_response(const Why& why);

// 200 closed, 202 not yet.
Response result_response(const Execution& execution);

// The leases as sent, and which of them are tokens. Only those go to the engine; the others count as lost.
struct Leases {
  std::vector<std::string> texts;
  std::vector<bool> known;
};

inline bool changed_something(const FinishOutcome& outcome) { return outcome.accepted; }
inline bool changed_something(const TurnOutcome& outcome) {
  return outcome.accepted || (outcome.step && outcome.step->accepted);
}

// The outcome for each lease, as the member `name`: ok or LeaseLost, and what `write` adds. 409 if all are lost.
template <class Outcome, class Write>
Response leases_response(std::string_view name, const Leases& leases, const std::vector<Outcome>& outcomes,
                         Write write) {
  std::size_t next = 0;
  bool any_accepted = false;
  JsonWriter items;
  items.begin_array();
  for (std::size_t i = 0; i < leases.texts.size(); ++i) {
    const Outcome* outcome = leases.known[i] ? &outcomes.at(next++) : nullptr;
    items.begin_object().key("lease").string(leases.texts[i]);
    if (outcome && outcome->accepted) {
      items.key("ok").boolean(true);
    } else {
      const bool changed = outcome && changed_something(*outcome);
      items.key("error").string(kLeaseLost).key("message").string(changed ? kTurnLostMessage : kLeaseLostMessage);
    }
    if (outcome) write(items, leases.texts[i], *outcome);
    any_accepted = any_accepted || (outcome && changed_something(*outcome));
    items.end_object();
  }
  items.end_array();

  JsonWriter out;
  out.begin_object();
  if (!any_accepted) out.key("error").string(kLeaseLost).key("message").string(kLeaseLostMessage);
  out.key(name).raw(items.text()).end_object();
  return json_response(any_accepted ? 200 : 409, out.take());
}

// The answer to a control operation.
Response control_response(const ControlOutcome& outcome, std::string body);

}  // namespace hapax::http
