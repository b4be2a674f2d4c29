#include "model/step.h"

#include <algorithm>
#include <exception>
#include <sstream>

#include "model/match.h"
#include "support/describe.h"

namespace hapax::model {

namespace {

Contents look(const Look& look, Store& store) {
  Contents contents;
  for (const std::string& name_space : look.name_spaces) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      ListFilter filter;
      filter.name_space = name_space;
      filter.kind = kind;
      filter.limit = kEverything;
      for (Execution& execution : store.list(filter)) contents.executions.push_back(std::move(execution));
    }
  }
  for (const IdentityHash& hash : look.hashes) contents.identities.push_back(store.find_identity(hash));
  contents.counts = store.count();
  // A store may know a queue already that a refused submission named.
  std::erase_if(contents.counts, [](const QueueCount& count) { return count.pending == 0 && count.running == 0; });
  for (const ExecutionId& run : look.runs) {
    for (Event& event : store.history(run, 0, kEverything)) contents.events.push_back(std::move(event));
  }
  return contents;
}

void set_policies(const Policies& policies, Store& store) {
  auto all = std::make_shared<QueuePolicies>();
  for (const auto& [name_space, queue, policy] : policies.queues) all->set(name_space, queue, policy);
  store.set_policies(std::move(all));
}

template <class Value>
std::string text(const Value& value) {
  std::ostringstream out;
  out << std::boolalpha << value;
  return out.str();
}
template <class Value>
std::string text(const std::optional<Value>& value) {
  return value ? text(*value) : "nothing";
}

template <class Item>
std::string list_difference(const std::vector<Item>& expected, const std::vector<Item>& actual) {
  std::ostringstream out;
  for (std::size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i < expected.size() && i < actual.size() && expected[i] == actual[i]) continue;
    out << "  item " << i << "\n    expected: " << (i < expected.size() ? text(expected[i]) : "none")
        << "\n    actual:   " << (i < actual.size() ? text(actual[i]) : "none") << '\n';
  }
  return out.str();
}

template <class Value>
std::string difference(const Value& expected, const Value& actual) {
  return "    expected: " + text(expected) + "\n    actual:   " + text(actual) + '\n';
}
template <class Item>
std::string difference(const std::vector<Item>& expected, const std::vector<Item>& actual) {
  return list_difference(expected, actual);
}
std::string difference(const Contents& expected, const Contents& actual) {
  return list_difference(expected.executions, actual.executions) +
         list_difference(expected.identities, actual.identities) + list_difference(expected.counts, actual.counts) +
         list_difference(expected.events, actual.events);
}
std::string difference(const Thrown& expected, const Thrown& actual) { return difference(expected.what, actual.what); }
std::string difference(std::monostate, std::monostate) { return {}; }

template <class Item>
void print_items(std::ostream& out, const char* verb, const std::vector<Item>& items) {
  out << verb;
  for (const Item& item : items) out << (items.size() == 1 ? " " : "\n      ") << item;
}

}  // namespace

namespace {

std::vector<ClaimOutcome> hand_out(const HandOut& step, Store& store) {
  WaitingClaims waiters;
  waiters.requests = step.waiters;
  std::visit(Match{[&](const std::vector<Submission>& s) { store.submit(s, waiters); },
                   [&](const std::vector<Report>& r) { store.finish(r, waiters); },
                   [&](const std::vector<Turn>& t) { store.commit_turns(t, waiters); }},
             step.items);
  waiters.outcomes.resize(step.waiters.size());
  return waiters.outcomes;
}

}  // namespace

Answer perform(const Step& step, Store& store) {
  try {
    return std::visit(
        Match{[&](const std::vector<Submission>& s) -> Answer { return store.submit(s); },
              [&](const std::vector<ClaimRequest>& r) -> Answer { return store.claim(r); },
              [&](const std::vector<Extension>& e) -> Answer { return store.extend(e); },
              [&](const std::vector<Report>& r) -> Answer { return store.finish(r); },
              [&](const std::vector<ControlRequest>& r) -> Answer { return store.control(r); },
              [&](const std::vector<Turn>& t) -> Answer { return store.commit_turns(t); },
              [&](const Sweep& sweep) -> Answer { return store.sweep(sweep.limit); },
              [&](const Purge& purge) -> Answer { return store.purge(purge.limit); },
              [&](const Release& r) -> Answer { return store.release_identity(r.name_space, r.hash); },
              [&](const Policies& policies) -> Answer { return set_policies(policies, store), std::monostate(); },
              [&](const Advance&) -> Answer { return std::monostate(); },
              [&](const List& list) -> Answer { return store.list(list.filter); },
              [&](const Look& all) -> Answer { return look(all, store); },
              [&](const std::vector<ActivityChange>& c) -> Answer { return store.activities().change(c); },
              [&](const std::vector<ActivityRun>& r) -> Answer { return store.activities().record(r); },
              [&](const Due& due) -> Answer { return store.activities().due(due.limit); },
              [&](const ActivityFilter& filter) -> Answer { return store.activities().list(filter); },
              [&](const RunFilter& filter) -> Answer { return store.activities().runs(filter); },
              [&](const PurgeRuns& p) -> Answer { return store.activities().purge_runs(p.before, p.limit); },
              [&](const HandOut& h) -> Answer { return hand_out(h, store); }},
        step);
  } catch (const std::exception& e) {
    return Thrown{e.what()};
  }
}

namespace {

void put_in_order(Effects& effects) {
  for (auto* changed : {&effects.closed, &effects.ready}) {
    for (Changed& each : *changed) each.type.clear();
    std::sort(changed->begin(), changed->end(),
              [](const auto& a, const auto& b) { return std::tie(a.id, a.queue) < std::tie(b.id, b.queue); });
    changed->erase(std::unique(changed->begin(), changed->end()), changed->end());
  }
}

}  // namespace

Answer in_order(Answer answer) {
  std::visit(
      []<class Kind>(Kind& outcomes) {
        if constexpr (std::is_same_v<Kind, SweepOutcome>) {
          put_in_order(outcomes.effects);
        } else if constexpr (requires { outcomes.front().effects; }) {
          for (auto& outcome : outcomes) put_in_order(outcome.effects);
        }
      },
      answer);
  return answer;
}

std::string describe_difference(const Answer& expected, const Answer& actual) {
  return std::visit(
      [](const auto& e, const auto& a) -> std::string {
        using E = std::decay_t<decltype(e)>;
        using A = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<E, A>) {
          return difference(e, a);
        } else if constexpr (std::is_same_v<E, Thrown>) {
          return "    expected: threw " + e.what + '\n';
        } else if constexpr (std::is_same_v<A, Thrown>) {
          return "    actual:   threw " + a.what + '\n';
        } else {
          return "    answers of two kinds\n";
        }
      },
      expected, actual);
}

std::ostream& operator<<(std::ostream& out, const Step& step) {
  std::visit(
      Match{[&](const std::vector<Submission>& s) { print_items(out, "submit", s); },
            [&](const std::vector<ClaimRequest>& r) { print_items(out, "claim", r); },
            [&](const std::vector<Extension>& e) { print_items(out, "extend", e); },
            [&](const std::vector<Report>& r) { print_items(out, "finish", r); },
            [&](const std::vector<ControlRequest>& r) { print_items(out, "control", r); },
            [&](const std::vector<Turn>& t) { print_items(out, "commit", t); },
            [&](const Sweep& sweep) { out << "sweep " << sweep.limit; },
            [&](const Purge& purge) { out << "purge " << purge.limit; },
            [&](const Release& r) { out << "release " << r.name_space << ' ' << r.hash.to_string().substr(7, 8); },
            [&](const Policies& policies) {
              out << "policies";
              for (const auto& [name_space, queue, policy] : policies.queues) {
                out << "\n      " << name_space << '/' << queue << ':' << policy;
              }
            },
            [&](const Advance& advance) { out << "advance " << format_duration(advance.by); },
            [&](const List& list) { out << "list " << list.filter.name_space << " limit " << list.filter.limit; },
            [&](const Look&) { out << "look at everything"; },
            [&](const std::vector<ActivityChange>& c) { print_items(out, "change", c); },
            [&](const std::vector<ActivityRun>& r) { print_items(out, "record", r); },
            [&](const Due& due) { out << "due " << due.limit; },
            [&](const ActivityFilter& f) {
              out << "activities of " << f.name_space.value_or("all") << " after '" << f.after << "' limit " << f.limit;
            },
            [&](const RunFilter& f) { out << "runs of " << f.name_space << '/' << f.activity << " limit " << f.limit; },
            [&](const PurgeRuns& p) { out << "purge runs before " << format_time(p.before) << " limit " << p.limit; },
            [&](const HandOut& h) {
              std::visit(Match{[&](const std::vector<Submission>& s) { print_items(out, "submit", s); },
                               [&](const std::vector<Report>& r) { print_items(out, "finish", r); },
                               [&](const std::vector<Turn>& t) { print_items(out, "commit", t); }},
                         h.items);
              print_items(out, "\n    while there waits", h.waiters);
            }},
      step);
  return out;
}

}  // namespace hapax::model
