// make_vectors FOLDER: writes the vectors of README.md, as this build's C++ library answers them.
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/canonical_json.h"
#include "core/json_writer.h"
#include "protocol/script.h"
#include "wire/event.h"

namespace hapax::protocol {

namespace {

// `happens[i]` is what happens after turn i, `meanwhile[i]` between its beginning and its commit, `before` before the
// first; `changed` is the code from the second turn on, if it is another.
struct Scenario {
  std::string name;
  std::string code;
  std::vector<std::string> happens;
  std::string changed = {};
  std::vector<std::string> meanwhile = {};
  std::string before = "[]";
};

// A request that is answered with compensation; `task` and `signal` are outcomes.
const std::string kRequest = R"({"kind":"cancel_requested","value":"too dear"})";
const std::string kCompensates =
    R"([{"op":"try","do":[{"op":"run","type":"a","input":1},{"op":"wait_signal","name":"go"},
    {"op":"run","type":"b","input":2}],"cancelled":[{"op":"run","type":"undo","input":0}]}])";
std::string task(int step) {
  return R"({"kind":"closed","step":)" + std::to_string(step) + R"(,"status":"completed","value":1})";
}
std::string signal(int step) {
  return R"({"kind":"signal","step":)" + std::to_string(step) + R"(,"name":"go","value":7})";
}
std::string list(const std::string& first, const std::string& second = {}) {
  return "[" + first + (second.empty() ? "" : "," + second) + "]";
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      {"steps_in_a_row",
       R"([{"op":"run","type":"a","input":1},{"op":"run","type":"b","input":2}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":10}])",
        R"([{"kind":"closed","step":2,"status":"completed","value":20}])"}},
      {"all_wait_for_each",
       R"([{"op":"all","types":["a","b","c"]}])",
       {R"([{"kind":"closed","step":3,"status":"completed","value":3}])",
        R"([{"kind":"closed","step":1,"status":"completed","value":1},
            {"kind":"closed","step":2,"status":"completed","value":2}])"}},
      {"any_takes_the_smallest_number",
       R"([{"op":"any","types":["a","b"]},{"op":"run","type":"c","input":0}])",
       {R"([{"kind":"closed","step":2,"status":"completed","value":2},
            {"kind":"closed","step":1,"status":"completed","value":1}])",
        R"([{"kind":"closed","step":3,"status":"completed","value":3}])"}},
      {"a_timer",
       R"([{"op":"sleep","ms":60000},{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"fired","step":1}])"}},
      {"a_signal",
       R"([{"op":"wait_signal","name":"go"},{"op":"wait_signal","name":"go","ms":5000}])",
       {R"([{"kind":"signal","step":1,"name":"go","value":7}])", R"([{"kind":"fired","step":2}])"}},
      {"a_signal_that_is_not_waited_for_yet",
       R"([{"op":"run","type":"a","input":0},{"op":"wait_signal","name":"go"}])",
       {R"([{"kind":"signal","name":"go","value":1},{"kind":"closed","step":1,"status":"completed","value":4}])",
        R"([{"kind":"signal","step":2,"name":"go","value":1}])"}},
      {"side_effects_are_computed_once",
       R"([{"op":"side_effect","name":"dice","value":4},{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":2,"status":"completed","value":1}])"},
       R"([{"op":"side_effect","name":"dice","value":6},{"op":"run","type":"a","input":0}])"},
      {"a_version_of_new_code",
       R"([{"op":"version","name":"change","current":2},{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":2,"status":"completed","value":1}])"},
       R"([{"op":"version","name":"change","current":3},{"op":"run","type":"a","input":0}])"},
      {"a_version_that_old_code_did_not_ask_for",
       R"([{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":1}])"},
       R"([{"op":"version","name":"change","current":1},{"op":"run","type":"a","input":0}])"},
      {"a_failed_step_is_caught",
       R"([{"op":"try","do":[{"op":"run","type":"a","input":0}],"catch":[{"op":"run","type":"undo","input":0}]}])",
       {R"([{"kind":"closed","step":1,"status":"failed","error":{"type":"Boom","message":"no"}}])",
        R"([{"kind":"closed","step":2,"status":"completed","value":0}])"}},
      {"a_failed_step_escapes",
       R"([{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":1,"status":"timed_out"}])"}},
      {"a_child",
       R"([{"op":"child","type":"kid","input":5}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":25}])"}},
      {"the_code_fails", R"([{"op":"fail","message":"no"}])", {}},
      {"continues_as_new",
       R"([{"op":"run","type":"a","input":0},{"op":"continue","input":9}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":1}])"}},
      {"another_type_at_a_step",
       R"([{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":1}])"},
       R"([{"op":"run","type":"b","input":0}])"},
      {"another_kind_at_a_step",
       R"([{"op":"run","type":"a","input":0},{"op":"sleep","ms":1000}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":1}])"},
       R"([{"op":"sleep","ms":1000},{"op":"run","type":"a","input":0}])"},
      {"code_that_ends_before_its_history",
       R"([{"op":"all","types":["a","b"]}])",
       {R"([{"kind":"closed","step":1,"status":"completed","value":1}])"},
       R"([{"op":"run","type":"a","input":0}])"},
      {"an_update_is_answered",
       R"([{"op":"on","name":"reserve","do":[]},{"op":"wait_signal","name":"close"}])",
       {R"([{"kind":"signal","step":1,"name":"hapax.update:reserve","value":{"payload":3,"request_key":"r1"}}])",
        R"([{"kind":"signal","step":4,"name":"hapax.update:reserve","value":{"payload":4,"request_key":"r2"}},
            {"kind":"signal","step":2,"name":"close","value":1}])"}},
      {"an_update_is_refused",
       R"([{"op":"on","name":"reserve","do":[{"op":"fail","message":"none left"}]},
           {"op":"wait_signal","name":"close"}])",
       {R"([{"kind":"signal","step":1,"name":"hapax.update:reserve","value":{"payload":3,"request_key":"r1"}}])",
        R"([{"kind":"signal","step":2,"name":"close","value":1}])"}},
      {"an_update_that_came_before_what_the_code_waits_for",
       R"([{"op":"on","name":"ask","do":[]},{"op":"run","type":"a","input":0},{"op":"run","type":"b","input":0}])",
       {R"([{"kind":"signal","step":1,"name":"hapax.update:ask","value":{"payload":5,"request_key":"r1"}},
            {"kind":"closed","step":2,"status":"completed","value":1}])",
        R"([{"kind":"closed","step":5,"status":"completed","value":2}])"}},
      {"an_update_that_came_after_what_the_code_waits_for",
       R"([{"op":"on","name":"ask","do":[]},{"op":"run","type":"a","input":0},{"op":"run","type":"b","input":0}])",
       {R"([{"kind":"closed","step":2,"status":"completed","value":1},
            {"kind":"signal","step":1,"name":"hapax.update:ask","value":{"payload":5,"request_key":"r1"}}])",
        R"([{"kind":"closed","step":3,"status":"completed","value":2}])"}},
      {"a_handler_of_updates_runs_a_step",
       R"([{"op":"on","name":"ask","do":[{"op":"run","type":"look","input":7}]},{"op":"wait_signal","name":"close"}])",
       {R"([{"kind":"signal","step":1,"name":"hapax.update:ask","value":{"payload":5,"request_key":"r1"}}])",
        R"([{"kind":"closed","step":3,"status":"completed","value":8}])",
        R"([{"kind":"signal","step":2,"name":"close","value":1}])"}},
      {"updates_of_two_names_are_answered_in_their_order",
       R"([{"op":"on","name":"a","do":[{"op":"run","type":"look","input":1}]},{"op":"on","name":"b","do":[]},
           {"op":"wait_signal","name":"close"}])",
       {R"([{"kind":"signal","step":1,"name":"hapax.update:a","value":{"payload":5,"request_key":"r1"}},
            {"kind":"signal","step":2,"name":"hapax.update:b","value":{"payload":6,"request_key":"r2"}}])",
        R"([{"kind":"closed","step":4,"status":"completed","value":8}])",
        R"([{"kind":"signal","step":3,"name":"close","value":1}])"}},
      {"an_update_waits_for_its_handler",
       R"([{"op":"run","type":"a","input":0},{"op":"on","name":"ask","do":[]},{"op":"run","type":"b","input":0}])",
       {R"([{"kind":"signal","name":"hapax.update:ask","value":{"payload":5,"request_key":"r1"}},
            {"kind":"closed","step":1,"status":"completed","value":1}])",
        R"([{"kind":"signal","step":2,"name":"hapax.update:ask","value":{"payload":5,"request_key":"r1"}}])",
        R"([{"kind":"closed","step":3,"status":"completed","value":2}])"}},
      {"an_update_of_another_name_than_the_history_has",
       R"([{"op":"on","name":"ask","do":[]},{"op":"run","type":"a","input":0}])",
       {R"([{"kind":"closed","step":2,"status":"completed","value":1}])"},
       R"([{"op":"on","name":"other","do":[]},{"op":"run","type":"a","input":0}])"},
      {.name = "cancel/before_the_first_step",
       .code = kCompensates,
       .happens = {list(task(2))},
       .before = list(kRequest)},
      {.name = "cancel/while_a_task_runs",
       .code = kCompensates,
       .happens = {list(kRequest), list(task(1)), list(task(3))}},
      {.name = "cancel/while_a_task_ends", .code = kCompensates, .happens = {list(task(1), kRequest), list(task(3))}},
      {.name = "cancel/while_it_waits",
       .code = kCompensates,
       .happens = {list(task(1)), list(kRequest), list(signal(2)), list(task(4))}},
      {.name = "cancel/after_what_it_waited_for",
       .code = kCompensates,
       .happens = {list(task(1)), list(signal(2), kRequest), list(task(4))}},
      {.name = "cancel/while_the_next_step_is_asked_for",
       .code = kCompensates,
       .happens = {list(task(1)), "[]", list(signal(2)), list(task(4))},
       .meanwhile = {"[]", list(kRequest)}},
      {.name = "cancel/that_is_not_answered",
       .code = R"([{"op":"run","type":"a","input":1},{"op":"sleep","ms":60000}])",
       .happens = {list(task(1), kRequest)}},
  };
  return all;
}

void add(std::vector<Event>& history, Event event) {
  event.no = static_cast<std::int64_t>(history.size()) + 1;
  event.at = kNow;
  history.push_back(std::move(event));
}

// The event as it is in the history of a server: without a number and a time, which add() gives.
Event event_of(Json document) {
  Json no, at;
  no.kind = Json::Kind::number;
  no.text = "1";
  at.kind = Json::Kind::string;
  at.text = format_time(kNow);
  document.members.emplace_back("no", no);
  document.members.emplace_back("at", at);
  return wire::read_event(document);
}

std::string make(const Scenario& scenario) {
  std::vector<Event> history;
  std::string code = scenario.code;
  const auto happens = [&](const std::string& events) {
    for (const Json& event : parse_json(events).items) add(history, event_of(event));
  };
  happens(scenario.before);
  JsonWriter out;
  out.begin_object().key("name").string(scenario.name).key("now").string(format_time(kNow));
  out.key("turns").begin_array();
  for (std::size_t i = 0; i <= scenario.happens.size(); ++i) {
    const TurnRequest turn = run_script(parse_json(code), history);
    out.begin_object().key("code").raw(code).key("history").begin_array();
    for (const Event& event : history) wire::write_event(out, event);
    out.end_array().key("turn").raw(describe(turn)).end_object();
    if (i == scenario.happens.size()) break;
    if (i < scenario.meanwhile.size()) happens(scenario.meanwhile[i]);
    for (const TurnRequest::Command& command : turn.commands) add(history, command.event);
    happens(scenario.happens[i]);
    if (!scenario.changed.empty()) code = scenario.changed;
  }
  return out.end_array().end_object().take();
}

}  // namespace

}  // namespace hapax::protocol

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: make_vectors FOLDER");
  for (const auto& scenario : hapax::protocol::scenarios()) {
    std::ofstream file(std::string(argv[1]) + "/" + scenario.name + ".json");
    file << hapax::canonical_json(hapax::parse_json(hapax::protocol::make(scenario))) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + scenario.name);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "make_vectors: " << error.what() << "\n";
  return 1;
}
