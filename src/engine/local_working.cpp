// Workers: claim, heartbeat, finish.
#include <spdlog/spdlog.h>

#include "engine/check_request.h"
#include "engine/store_engine.h"

namespace hapax {

std::shared_ptr<Waiting> StoreEngine::claim(ClaimCall call, Reply<std::vector<Claimed>> reply) {
  if (is_refused(reply, [&] { check(call); })) return nullptr;
  reply = workers_.note(call, std::move(reply));
  return claims_.claim(std::move(call), std::move(reply));
}

void StoreEngine::handed_out(const std::vector<Claimed>& claimed) {
  claimed_ += static_cast<std::int64_t>(claimed.size());
  std::optional<Time> due;
  for (const Claimed& each : claimed) {
    const auto own = each.execution.due_at();
    if (own && (!due || *own < *due)) due = own;
  }
  if (due) sweeper_.due_by(*due);
}

// A lease of no length is one that is given back.
void StoreEngine::give_back(const std::vector<Claimed>& claimed) {
  std::vector<Extension> extensions;
  for (const auto& [execution, events] : claimed) {
    extensions.push_back({{execution.id, execution.attempt, *execution.lease_secret}, Duration(0)});
  }
  lanes_.extend.put(std::move(extensions), [this](Answer<std::vector<ExtendOutcome>> answers) {
    try {
      for (const ExtendOutcome& outcome : std::move(answers).get()) spread(outcome.effects);
    } catch (const Failure& failure) {
      spdlog::warn("giving back: {}; it comes back when the leases end", failure.what());
    }
  });
}

void StoreEngine::heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) {
  if (is_refused(reply, [&] { check(extensions); })) return;
  lanes_.extend.put(std::move(extensions),
                    [this, reply = std::move(reply)](Answer<std::vector<ExtendOutcome>> answers) {
                      try {
                        std::vector<ExtendOutcome> outcomes = std::move(answers).get();
                        for (const ExtendOutcome& outcome : outcomes) {
                          spread(outcome.effects);
                          if (!outcome.ok) ++leases_lost_;
                          if (outcome.lease_expires_at) sweeper_.due_by(*outcome.lease_expires_at);
                        }
                        reply(std::move(outcomes));
                      } catch (...) {
                        reply(std::current_exception());
                      }
                    });
}

void StoreEngine::finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) {
  if (is_refused(reply, [&] { check(reports); })) return;
  const std::size_t bytes = bytes_of(reports);
  lanes_.finish.put(std::move(reports), std::move(reply), bytes);
}

std::vector<FinishOutcome> StoreEngine::commit_reports(std::span<const Report> reports) {
  ClaimDesk::Loan loan = claims_.lend_late();
  std::vector<FinishOutcome> outcomes = store_->finish(reports, loan.waiters());
  loan.deliver();
  Announcements ready, left;  // queues, and those where it may matter that one has left
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const FinishOutcome& outcome = outcomes[i];
    const ExecutionId& id = reports[i].token.execution;
    const bool is_alone = reports.size() == 1 && !outcome.purged;
    if (outcome.accepted && is_closed(outcome.status)) {
      is_alone ? results_.closed_now(id) : results_.closed(id, outcome.purged);
    }
    spread(outcome.effects);
    count_finished(outcome, ready, left);
  }
  announce_finished(std::move(ready), left);
  return outcomes;
}

void StoreEngine::count_finished(const FinishOutcome& outcome, Announcements& ready, Announcements& left) {
  if (!outcome.accepted) {
    ++leases_lost_;
    return;
  }
  if (outcome.status == Status::completed) ++completed_;
  if (outcome.status != Status::completed && !outcome.snoozed) ++failed_attempts_;
  const bool makes_room = !is_closed(outcome.status) || outcome.had_concurrency_key;
  (makes_room ? ready : left)[{outcome.name_space, outcome.queue}] += 1;
}

// That something ended makes room for others where the queue has a limit.
void StoreEngine::announce_finished(Announcements ready, const Announcements& left) {
  for (const auto& [key, count] : left) {
    if (settings_.queue(key.name_space, key.queue).max_running) ready[key] += count;
  }
  announce(ready);
}

}  // namespace hapax
