// Workers: the turns of workflows.
#include <mutex>

#include "http/answer.h"
#include "http/parse_turn.h"
#include "http/service.h"
#include "wire/write_answer.h"

namespace hapax::http {

namespace {

// Collects the answers to turns that are committed one by one, and replies once all are there.
class Gathering {
 public:
  Gathering(std::size_t count, Reply<std::vector<TurnOutcome>> reply)
      : outcomes_(count), left_(count), reply_(std::move(reply)) {}

  void put(std::size_t index, Answer<TurnOutcome> answer) {
    {
      std::lock_guard lock(mutex_);
      try {
        outcomes_[index] = std::move(answer).get();
      } catch (...) {
        if (!thrown_) thrown_ = std::current_exception();
      }
      if (--left_ > 0) return;
    }
    if (thrown_) return reply_(thrown_);
    reply_(std::move(outcomes_));
  }

 private:
  std::mutex mutex_;
  std::vector<TurnOutcome> outcomes_;
  std::size_t left_;
  std::exception_ptr thrown_;
  const Reply<std::vector<TurnOutcome>> reply_;
};

Response turns_response(const Leases& leases, const std::vector<TurnOutcome>& outcomes) {
  std::size_t next = 0;
  bool any_accepted = false;
  JsonWriter items;
  items.begin_array();
  for (std::size_t i = 0; i < leases.texts.size(); ++i) {
    const TurnOutcome outcome = leases.known[i] ? outcomes.at(next++) : TurnOutcome{};
    any_accepted = any_accepted || outcome.accepted;
    items.begin_object().key("lease").string(leases.texts[i]);
    if (outcome.accepted) {
      items.key("ok").boolean(true).key("status").string(to_string(outcome.status));
    } else {
      items.key("error").string(kLeaseLost).key("message").string(kLeaseLostMessage);
    }
    items.end_object();
  }
  items.end_array();

  JsonWriter out;
  out.begin_object();
  if (!any_accepted) out.key("error").string(kLeaseLost).key("message").string(kLeaseLostMessage);
  out.key("turns").raw(items.text()).end_object();
  return json_response(any_accepted ? 200 : 409, out.take());
}

void commit_turns(Backend& backend, Request& request, const Responder& responder) {
  std::vector<TurnItem> items = parse_turns(parse_body(request));
  std::vector<TurnRequest> turns;
  Leases leases;
  for (TurnItem& item : items) {
    const auto token = LeaseToken::parse(item.lease);
    leases.known.push_back(token.has_value());
    leases.texts.push_back(std::move(item.lease));
    if (!token) continue;
    turns.push_back(std::move(item.turn));
    turns.back().token = *token;
    turns.back().name_space = request.name_space;
  }
  if (turns.empty()) return responder.answer(turns_response(leases, {}));
  const auto gathering = std::make_shared<Gathering>(
      turns.size(), responder.reply<std::vector<TurnOutcome>>(
                        [leases = std::move(leases)](const std::vector<TurnOutcome>& outcomes) {
                          return turns_response(leases, outcomes);
                        }));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    backend.engine.commit_turn(std::move(turns[i]), [gathering, i](Answer<TurnOutcome> answer) {
      gathering->put(i, std::move(answer));
    });
  }
}

}  // namespace

void add_turn_routes(Router& router, Backend& backend) {
  router.add(Method::post, "/v1/claims/turns", on(backend, commit_turns));
}

}  // namespace hapax::http
