#include "engine/local_engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "engine/store_engine.h"

namespace hapax {

namespace {

// Somebody else's changes are looked at no more often than this, however fast they come.
constexpr Duration kRefreshPause{100};

// Between two tries to go on with a store that was replaced.
constexpr Duration kReopenPause{500};

}  // namespace

StoreEngine::StoreEngine(std::shared_ptr<Store> store, EngineOptions options)
    : options_(std::move(options)),
      store_(std::move(store)),
      settings_(options_),
      sweeper_(*store_, sweep_timer_,
               {.cleanup_interval = options_.cleanup_interval,
                .request_cleanup_interval = options_.request_cleanup_interval,
                .run_retention = options_.workflow_retention},
               [this](const Effects& effects) { spread(effects); }),
      results_(*store_, timer_, reader_),
      updates_(*store_, reader_,
               [this](ControlRequest request, Reply<ControlOutcome> reply) {
                 put_control(std::move(request), std::move(reply));
               }),
      claims_(*store_, timer_,
              {.handed_out = [this](const std::vector<Claimed>& claimed) { handed_out(claimed); },
               .give_back = [this](const std::vector<Claimed>& claimed) { give_back(claimed); }},
              limits_),
      lanes_({.submit = [this](std::span<const Submission> batch) { return commit_submissions(batch); },
              .finish = [this](std::span<const Report> batch) { return commit_reports(batch); },
              .extend = [this](std::span<const Extension> batch) { return store_->extend(batch); },
              .control = [this](std::span<const ControlRequest> batch) { return commit_controls(batch); },
              .turns = [this](std::span<const Turn> batch) { return commit_resolved(batch); }},
             store_->parallelism(), limits_, options_.submit_backlog),
      activities_(*this, *store_, settings_, options_, [this](const std::string& name_space, const std::string& queue) {
        declare_queue(name_space, queue);
      }) {
  settings_.load(store_->settings());
  store_->set_policies(settings_.policies());
  store_->watch([this] { changed_elsewhere(); });
  sweeper_.start();
  activities_.start();
  expire();
}

void StoreEngine::stop(Duration grace) {
  if (stopped_.exchange(true)) return;
  const Timer::Key impatience = timer_.after(grace, [this] { store_->interrupt(); });
  store_->watch({});
  activities_.stop();
  claims_.stop();
  results_.stop();
  updates_.stop();
  lanes_.stop();
  sweep_timer_.stop();
  reader_.stop();
  timer_.cancel(impatience);
  timer_.stop();
}

// Twenty times within the timeout: nobody waits for longer than that and a little.
void StoreEngine::expire() {
  claims_.expire();
  lanes_.expire();
  activities_.expire();
  timer_.after(options_.store_timeout / 20, [this] { expire(); });
}

// ---- what changed

// Tells everybody who waits what a verb changed.
void StoreEngine::spread(const Effects& effects) {
  if (effects.empty()) return;
  Announcements ready;
  for (const Changed& closed : effects.closed) {
    results_.closed(closed.id);
    if (closed.kind == Kind::workflow) updates_.may_be_answered(closed.id);
    if (closed.kind == Kind::task) ready[{closed.name_space, closed.queue, closed.kind}] += 1;  // its place is free
  }
  for (const Changed& each : effects.ready) ready[{each.name_space, each.queue, each.kind, each.type}] += 1;
  announce(ready);
  if (effects.next_due) sweeper_.due_by(*effects.next_due);
}

void StoreEngine::announce(const Announcements& announcements) {
  for (const auto& [key, count] : announcements) claims_.announce(key, count);
}

// Another process changed something. The word comes on the store's thread and may come often: looking is left to the
// reader's, and done once for all that came meanwhile.
void StoreEngine::changed_elsewhere() {
  claims_.announce_everywhere();
  if (refresh_pending_.exchange(true)) return;
  const auto soonest = last_refresh_.load() + kRefreshPause;
  reader_.at(std::max(std::chrono::steady_clock::now(), soonest), [this] { refresh(); });
}

void StoreEngine::refresh() {
  refresh_pending_ = false;  // before reading: what changes from here on brings a refresh of its own
  last_refresh_ = std::chrono::steady_clock::now();
  try {
    if (store_->is_replaced()) begin_anew();
    reload_settings();
    results_.look_again();
    updates_.look_again();
  } catch (const std::exception& failure) {
    spdlog::warn("reading what another process changed: {}", failure.what());
    if (store_->is_replaced()) reader_.after(kReopenPause, [this] { changed_elsewhere(); });
  }
}

void StoreEngine::clock_moved() {
  sweeper_.sweep();
  workers_.clock_moved();
  unclaimed_.look();
  activities_.clock_moved();
  claims_.announce_everywhere();
}

// Until reopen() the store answers nothing. What was known of it goes before that; what follows is as for a new one.
void StoreEngine::begin_anew() {
  results_.forget_runs();
  store_->reopen();
  spdlog::warn(
      "the store was created anew or restored, or another server answers: everything known of it is forgotten");
  sweeper_.due_by(store_->now());
  activities_.store_replaced();
}

// ---- operations

void StoreEngine::check_ready() {
  if (stopped_) throw Failure(Failure::Code::stopped, "the engine is shutting down");
  readiness_.check();
}

EngineCounters StoreEngine::counters() {
  EngineCounters counters;
  counters.submitted = submitted_;
  counters.deduplicated = deduplicated_;
  counters.conflicts = conflicts_;
  counters.claimed = claimed_;
  counters.completed = completed_;
  counters.failed_attempts = failed_attempts_;
  counters.leases_lost = leases_lost_;
  counters.swept = sweeper_.swept();
  counters.purged = sweeper_.purged();
  counters.commits = lanes_.submit.commits() + claims_.lane().commits() + lanes_.finish.commits();
  counters.store_failures =
      lanes_.failures() + claims_.lane().failures() + sweeper_.failures() + activities_.failures();
  counters.waiting_claims = claims_.waiting();
  counters.waiting_results = results_.waiting();
  return counters;
}

std::unique_ptr<LocalEngine> start_engine(std::shared_ptr<Store> store, EngineOptions options) {
  return std::make_unique<StoreEngine>(std::move(store), std::move(options));
}

}  // namespace hapax
