// Workers: the turns of workflows.
#include <spdlog/spdlog.h>

#include "http/answer.h"
#include "http/parse_request.h"
#include "http/service.h"
#include "wire/read_request.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

Response turns_response(const Leases& leases, const std::vector<TurnOutcome>& outcomes) {
  return leases_response("turns", leases, outcomes,
                         [](JsonWriter& out, const std::string& lease, const TurnOutcome& outcome) {
                           if (outcome.accepted) out.key("status").string(to_string(outcome.status));
                           if (!outcome.step) return;
                           out.key("step").begin_object().key("ok").boolean(outcome.step->accepted).end_object();
                           if (outcome.accepted)
                             out.key("next_lease").string(LeaseToken::parse(lease)->next().to_string());
                         });
}

// A turn whose worker could not take it, by its place among the turns.
struct StuckTurn {
  std::size_t place;
  ExecutionId run;
  std::string error_type;
};

void tell_of(const StuckTurn& turn, Metrics* metrics) {
  spdlog::warn("a workflow is stuck: {}; `hapax why {}` says more", turn.error_type, turn.run.to_string());
  if (metrics) metrics->count_stuck_turn();
}

void commit_turns(Backend& backend, Request& request, const Responder& responder) {
  std::vector<wire::TurnItem> items = wire::read_turns(parse_body(request));
  std::vector<TurnRequest> turns;
  Leases leases;
  std::vector<StuckTurn> stuck;
  for (wire::TurnItem& item : items) {
    const auto token = LeaseToken::parse(item.lease);
    const auto step = item.step ? LeaseToken::parse(item.step->lease) : std::nullopt;
    const bool known = token && step.has_value() == item.step.has_value();
    leases.known.push_back(known);
    leases.texts.push_back(std::move(item.lease));
    if (!known) continue;
    TurnRequest& turn = turns.emplace_back(std::move(item.turn));
    turn.token = *token;
    turn.name_space = request.name_space;
    if (!step) turn.run = backend.claimed_runs.find(*token);
    if (!std::holds_alternative<Turn::Unfinished>(turn.end)) backend.claimed_runs.forget(*token);
    if (const auto* end = std::get_if<Turn::Stuck>(&turn.end)) {
      stuck.push_back({turns.size() - 1, token->execution, end->error.type});
    }
    if (step) turn.step = Report{*step, std::move(item.step->outcome), request.name_space};
  }
  if (turns.empty()) return responder.answer(turns_response(leases, {}));
  backend.engine.commit_turns(
      std::move(turns),
      responder.reply<std::vector<TurnOutcome>>(
          [&backend, leases = std::move(leases), stuck = std::move(stuck)](const std::vector<TurnOutcome>& outcomes) {
            for (const StuckTurn& turn : stuck) {
              if (outcomes.at(turn.place).accepted) tell_of(turn, backend.metrics);
            }
            return turns_response(leases, outcomes);
          }));
}

}  // namespace

void add_turn_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/claims/turns", on(backend, commit_turns));
}

}  // namespace hapax::http
