#include "model/oracle/oracle.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "model/match.h"

namespace hapax::model {

namespace {

// A batch is its items one after the other.
template <class Item, class Verb>
auto each(const std::vector<Item>& items, Verb verb) {
  std::vector<decltype(verb(items.front()))> outcomes;
  for (const Item& item : items) outcomes.push_back(verb(item));
  return outcomes;
}

}  // namespace

Answer Oracle::perform(const Step& step, Time now) {
  world_.now = now;
  activities_.now = now;
  return std::visit(Match{[&](const std::vector<Submission>& s) -> Answer {
                            return each(s, [&](const Submission& item) { return world_.submit(item); });
                          },
                          [&](const std::vector<ClaimRequest>& r) -> Answer {
                            return each(r, [&](const ClaimRequest& item) { return world_.claim(item); });
                          },
                          [&](const std::vector<Extension>& e) -> Answer {
                            return each(e, [&](const Extension& item) { return world_.extend(item); });
                          },
                          [&](const std::vector<Report>& r) -> Answer {
                            return each(r, [&](const Report& item) { return world_.finish(item); });
                          },
                          [&](const std::vector<ControlRequest>& r) -> Answer {
                            return each(r, [&](const ControlRequest& item) { return world_.control(item); });
                          },
                          [&](const std::vector<Turn>& t) -> Answer {
                            return each(t, [&](const Turn& item) { return world_.commit_turn(item); });
                          },
                          [&](const Sweep& sweep) -> Answer { return world_.sweep(sweep.limit); },
                          [&](const Purge& purge) -> Answer { return world_.purge(purge.limit); },
                          [&](const Release& release) -> Answer {
                            const auto entry = world_.ledger.find(release.hash);
                            if (entry == world_.ledger.end() || entry->second.name_space != release.name_space)
                              return false;
                            world_.ledger.erase(entry);
                            return true;
                          },
                          [&](const Policies& policies) -> Answer {
                            world_.policies.clear();
                            for (const auto& [name_space, queue, policy] : policies.queues) {
                              world_.policies[{name_space, queue}] = policy;
                            }
                            return std::monostate();
                          },
                          [&](const Advance&) -> Answer { return std::monostate(); },
                          [&](const List& step) -> Answer { return list(step.filter); },
                          [&](const Look& step) -> Answer { return look(step); },
                          [&](const std::vector<ActivityChange>& c) -> Answer {
                            return each(c, [&](const ActivityChange& item) { return activities_.change(item); });
                          },
                          [&](const std::vector<ActivityRun>& r) -> Answer {
                            return each(r, [&](const ActivityRun& item) { return activities_.record(item); });
                          },
                          [&](const Due& due) -> Answer { return activities_.due(due.limit); },
                          [&](const ActivityFilter& filter) -> Answer { return activities_.list(filter); },
                          [&](const RunFilter& filter) -> Answer { return activities_.runs(filter); },
                          [&](const PurgeRuns& p) -> Answer { return activities_.purge_runs(p.before, p.limit); },
                          [&](const HandOut& step) -> Answer { return hand_out(step); }},
                    step);
}

bool Oracle::has_failed_step(const ExecutionId& run) {
  const std::vector<Event> events = world_.events_after(run, 0);
  return std::any_of(events.begin(), events.end(), [](const Event& event) { return event.status == Status::failed; });
}

std::vector<Execution> Oracle::list(const ListFilter& filter) {
  std::vector<Execution> found;
  for (auto next = world_.executions.rbegin(); next != world_.executions.rend(); ++next) {
    const Execution& each = next->second;
    if (std::ssize(found) == filter.limit) break;
    if (each.name_space != filter.name_space || each.kind != filter.kind) continue;
    if (filter.queue && each.queue != *filter.queue) continue;
    if (filter.type && each.type != *filter.type) continue;
    if (filter.idempotency_key && each.idempotency_key != *filter.idempotency_key) continue;
    if (filter.status && each.status != *filter.status) continue;
    if (filter.parent && each.parent != *filter.parent) continue;
    if (filter.before && each.id >= *filter.before) continue;
    found.push_back(each);
  }
  return found;
}

Contents Oracle::look(const Look& look) {
  Contents contents;
  for (const std::string& name_space : look.name_spaces) {
    for (const Kind kind : {Kind::task, Kind::workflow}) {
      ListFilter filter;
      filter.name_space = name_space;
      filter.kind = kind;
      filter.limit = kEverything;
      for (const Execution& execution : list(filter)) contents.executions.push_back(execution);
    }
  }
  for (const IdentityHash& hash : look.hashes) {
    std::optional<FoundIdentity>& found = contents.identities.emplace_back();
    const auto entry = world_.ledger.find(hash);
    if (entry == world_.ledger.end()) continue;
    found.emplace();
    found->entry = entry->second;
    if (const Execution* owner = world_.owner_of(entry->second)) found->owner = *owner;
    found->live = world_.is_live(entry->second);
    found->expires_at = world_.dies_at(entry->second);
  }
  std::map<oracle::QueueKey, QueueCount> counts;
  for (const auto& [id, each] : world_.executions) {
    if (each.status != Status::pending && each.status != Status::running) continue;
    QueueCount& count = counts[{each.name_space, each.queue}];
    count.name_space = each.name_space;
    count.queue = each.queue;
    if (each.status == Status::running) {
      ++count.running;
    } else {
      ++count.pending;
      oracle::keep_earliest(count.oldest_run_at, each.run_at);
    }
  }
  for (const auto& [queue, count] : counts) contents.counts.push_back(count);
  for (const ExecutionId& run : look.runs) {
    for (const Event& event : world_.events_after(run, 0)) contents.events.push_back(event);
  }
  return contents;
}

std::vector<ClaimOutcome> Oracle::hand_out(const HandOut& step) {
  std::vector<ExecutionId> ready;
  const auto note = [&](const Effects& effects) {
    for (const oracle::Changed& each : effects.ready) ready.push_back(each.id);
  };
  std::visit(Match{[&](const std::vector<Submission>& submissions) {
                     for (const Submission& submission : submissions) {
                       const SubmitOutcome outcome = world_.submit(submission);
                       note(outcome.effects);
                       const bool is_stored =
                           outcome.kind == SubmitOutcome::Kind::created && !submission.dry_run && !outcome.claimed;
                       if (is_stored) ready.push_back(outcome.execution.id);
                     }
                   },
                   [&](const std::vector<Report>& reports) {
                     for (const Report& report : reports) note(world_.finish(report).effects);
                   },
                   [&](const std::vector<Turn>& turns) {
                     for (const Turn& turn : turns) note(world_.commit_turn(turn).effects);
                   }},
             step.items);
  return world_.hand_out(ready, step.waiters);
}

}  // namespace hapax::model
