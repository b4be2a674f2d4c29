#include "engine/local_engine.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "engine/claim.h"
#include "engine/lanes.h"
#include "engine/local_activities.h"
#include "engine/readiness.h"
#include "engine/settings_book.h"
#include "engine/submit.h"
#include "engine/sweep.h"
#include "engine/timer.h"
#include "engine/turn.h"
#include "engine/wait_closed.h"

namespace hapax {

namespace {

// Changes by other processes are read no more often than this, however fast they come.
constexpr Duration kRefreshPause{100};

// Between two tries to continue with a replaced store.
constexpr Duration kReopenPause{500};

class StoreEngine final : public LocalEngine {
 public:
  StoreEngine(std::shared_ptr<Store> store, EngineOptions options);
  ~StoreEngine() override { StoreEngine::stop(); }

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override;
  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) override {
    return claims_.claim(std::move(call), std::move(reply));
  }
  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override;
  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override;
  void control(ControlRequest request, Reply<ControlOutcome> reply) override;
  void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) override;
  std::optional<Execution> begin_step(const Execution& run, const BeginCall& call,
                                      TurnRequest::Command& command) override {
    return hapax::begin_step(run, call, command, settings_, options_, claims_, store_->now());
  }
  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override;
  std::shared_ptr<Waiting> wait_workflow(const std::string& name_space, const std::string& workflow_id, Duration wait,
                                         Reply<std::optional<Execution>> reply) override;

  std::optional<Execution> find_workflow(const std::string& name_space, const std::string& workflow_id) override {
    return hapax::find_workflow(*store_, name_space, workflow_id);
  }
  std::vector<Event> history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                             std::int32_t limit) override;
  std::optional<Execution> find(const std::string& name_space, const ExecutionId& id) override {
    try {
      return store_->find(name_space, id);
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::corrupt || !failure.for_clients().empty()) throw;
      throw Failure(failure.code(), fmt::format("{}: {}", id.to_string(), failure.what()),
                    fmt::format("What is stored of {} cannot be read: restore it from a backup.", id.to_string()));
    }
  }
  Page list(const ListFilter& filter) override { return store_->list(filter); }
  std::optional<FoundIdentity> find_identity(const std::string& name_space, const std::string& type,
                                             const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                             const std::string& key) override;
  bool release_identity(const std::string& name_space, const IdentityHash& hash) override;

  QueueView queue(const std::string& name_space, const std::string& name) override {
    return settings_.queue_view(name_space, name, store_->count(name_space));
  }
  std::vector<QueueView> queues(const std::string& name_space) override {
    return settings_.queue_views(name_space, store_->count(name_space));
  }
  QueueView put_queue(const std::string& name_space, const std::string& name, const QueueSettings& settings) override;
  QueueView set_paused(const std::string& name_space, const std::string& name, bool paused) override;
  TypeView type(const std::string& name_space, const std::string& name) override {
    return settings_.type_view(name_space, name);
  }
  std::vector<TypeView> types(const std::string& name_space) override { return settings_.type_views(name_space); }
  TypeView put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) override;
  TypeView patch_type(const std::string& name_space, const std::string& name, const Json& patch) override;

  Activities& activities() override { return activities_; }
  void check_ready() override;
  EngineCounters counters() override;
  std::vector<QueueCount> queue_counts() override { return store_->count(std::nullopt); }
  void stop(Duration grace = std::chrono::seconds(5)) override;
  SubmitResult submit_through(const std::string& name_space, SubmitRequest request, const StoreIt& store_it) override;

 private:
  using Announcements = ClaimDesk::Counts;

  std::vector<SubmitOutcome> commit_submissions(std::span<const Submission> submissions);
  std::vector<FinishOutcome> commit_reports(std::span<const Report> reports);
  std::vector<ControlOutcome> commit_controls(std::span<const ControlRequest> requests);
  std::vector<TurnOutcome> commit_resolved(std::span<const Turn> turns);
  void count_finished(const FinishOutcome& outcome, Announcements& ready, Announcements& left);
  void announce_finished(Announcements ready, const Announcements& left);
  void spread(const Effects& effects);
  void handed_out(const std::vector<Claimed>& claimed);
  void give_back(const std::vector<Claimed>& claimed);
  void announce(const Announcements& announcements);
  void reload_settings();
  void declare_queue(const std::string& name_space, const std::string& name);
  void changed_elsewhere();
  void refresh();
  void begin_anew();
  void expire();

  const EngineOptions options_;
  const LaneLimits limits_{.timeout = options_.store_timeout};
  const std::shared_ptr<Store> store_;
  IdGenerator ids_;
  SettingsBook settings_;
  std::mutex reload_mutex_;

  std::atomic<std::int64_t> submitted_ = 0, deduplicated_ = 0, conflicts_ = 0, claimed_ = 0, completed_ = 0,
                            failed_attempts_ = 0, leases_lost_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> refresh_pending_ = false;
  std::atomic<Timer::Instant> last_refresh_ = Timer::Instant();

  std::mutex put_mutex_;  // settings are read, changed and written back
  Readiness readiness_{*store_};

  Timer timer_;        // ends of waits
  Timer reader_;       // reads for those who wait
  Timer sweep_timer_;  // sweeps and cleanups, which may take some time
  Sweeper sweeper_;
  ResultDesk results_;
  ClaimDesk claims_;
  Lanes lanes_;
  LocalActivities activities_;
};

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
      claims_(*store_, timer_,
              {.handed_out = [this](const std::vector<Claimed>& claimed) { handed_out(claimed); },
               .give_back = [this](const std::vector<Claimed>& claimed) { give_back(claimed); }},
              limits_),
      lanes_({.submit = [this](std::span<const Submission> batch) { return commit_submissions(batch); },
              .finish = [this](std::span<const Report> batch) { return commit_reports(batch); },
              .extend = [this](std::span<const Extension> batch) { return store_->extend(batch); },
              .control = [this](std::span<const ControlRequest> batch) { return commit_controls(batch); },
              .turns = [this](std::span<const Turn> batch) { return commit_resolved(batch); }},
             store_->committers(), limits_),
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
  lanes_.stop();
  sweep_timer_.stop();
  reader_.stop();
  timer_.cancel(impatience);
  timer_.stop();
}

// Twenty times within the timeout: no call waits much longer than that.
void StoreEngine::expire() {
  claims_.expire();
  lanes_.expire();
  activities_.expire();
  timer_.after(options_.store_timeout / 20, [this] { expire(); });
}

// ---- submit

void StoreEngine::submit(const std::string& name_space, std::vector<SubmitRequest> requests,
                         Reply<std::vector<SubmitResult>> reply) {
  struct Pending {
    std::size_t position;
    Asked asked;
  };
  std::vector<SubmitResult> results(requests.size());
  std::vector<Pending> pending;
  std::vector<Submission> submissions;
  submissions.reserve(requests.size());
  const Time now = store_->now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto resolved = resolve(name_space, std::move(requests[i]), settings_, options_, ids_.next(now));
    if (auto* refusal = std::get_if<Refusal>(&resolved)) {
      results[i] = std::move(*refusal);
      continue;
    }
    auto& accepted = std::get<ResolvedSubmission>(resolved);
    pending.push_back({i, Asked(accepted)});
    submissions.push_back(std::move(accepted.submission));
  }
  if (submissions.empty()) return reply(std::move(results));

  const std::size_t bytes = bytes_of(submissions);
  lanes_.submit.put(
      std::move(submissions),
      [results = std::move(results), pending = std::move(pending),
       reply = std::move(reply)](Answer<std::vector<SubmitOutcome>> answers) mutable {
        try {
          std::vector<SubmitOutcome> outcomes = std::move(answers).get();
          for (std::size_t i = 0; i < pending.size(); ++i) {
            results[pending[i].position] = answer(std::move(outcomes[i]), pending[i].asked);
          }
        } catch (...) {
          return reply(std::current_exception());
        }
        reply(std::move(results));
      },
      bytes);
}

SubmitResult StoreEngine::submit_through(const std::string& name_space, SubmitRequest request,
                                         const StoreIt& store_it) {
  auto resolved = resolve(name_space, std::move(request), settings_, options_, ids_.next(store_->now()));
  if (auto* refusal = std::get_if<Refusal>(&resolved)) return std::move(*refusal);
  const auto& accepted = std::get<ResolvedSubmission>(resolved);
  return answer(store_it(accepted.submission, *settings_.policies()), Asked(accepted));
}

std::vector<SubmitOutcome> StoreEngine::commit_submissions(std::span<const Submission> submissions) {
  const ResultDesk::Mark mark = results_.mark();
  ClaimDesk::Loan loan = claims_.lend(submissions);
  std::vector<SubmitOutcome> outcomes = store_->submit(submissions, loan.waiters());
  const std::set<ExecutionId> handed = loan.deliver();
  const Time now = store_->now();
  Announcements ready;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const SubmitOutcome& outcome = outcomes[i];
    if (submissions[i].dry_run) continue;
    switch (outcome.kind) {
      case SubmitOutcome::Kind::duplicate: ++deduplicated_; continue;
      case SubmitOutcome::Kind::conflict:
      case SubmitOutcome::Kind::id_taken: ++conflicts_; continue;
      case SubmitOutcome::Kind::created: ++submitted_; break;
    }
    // A delayed one counts too: waiting claims must learn when to claim again.
    const Execution& created = outcome.execution;
    if (created.kind == Kind::workflow && created.status == Status::pending) results_.created_run(created, mark);
    if (!handed.contains(created.id)) ready[{created.name_space, created.queue, created.kind}] += 1;
    if (const auto due = outcome.execution.due_at()) sweeper_.due_by(*due);
    if (outcome.superseded) {
      results_.closed(*outcome.superseded);
      sweeper_.due_by(now);
    }
    spread(outcome.effects);
  }
  announce(ready);
  return outcomes;
}

// ---- claim, heartbeat, finish, control

void StoreEngine::handed_out(const std::vector<Claimed>& claimed) {
  claimed_ += static_cast<std::int64_t>(claimed.size());
  std::optional<Time> due;
  for (const Claimed& each : claimed) {
    const auto own = each.execution.due_at();
    if (own && (!due || *own < *due)) due = own;
  }
  if (due) sweeper_.due_by(*due);
}

// A lease of no length gives the task back.
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
  const std::size_t bytes = bytes_of(reports);
  lanes_.finish.put(std::move(reports), std::move(reply), bytes);
}

std::vector<FinishOutcome> StoreEngine::commit_reports(std::span<const Report> reports) {
  ClaimDesk::Loan loan = claims_.lend_late();
  std::vector<FinishOutcome> outcomes = store_->finish(reports, loan.waiters());
  loan.deliver();
  Announcements ready, left;  // queues, and those with a limit that has room again
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
  (outcome.status == Status::completed ? completed_ : failed_attempts_) += 1;
  const bool makes_room = !is_closed(outcome.status) || outcome.had_concurrency_key;
  (makes_room ? ready : left)[{outcome.name_space, outcome.queue}] += 1;
}

// An end makes room for others if the queue has a limit.
void StoreEngine::announce_finished(Announcements ready, const Announcements& left) {
  for (const auto& [key, count] : left) {
    if (settings_.queue(key.name_space, key.queue).max_running) ready[key] += count;
  }
  announce(ready);
}

void StoreEngine::control(ControlRequest request, Reply<ControlOutcome> reply) {
  resolve_control(request, options_, ids_.next(store_->now()));
  std::vector<ControlRequest> requests;
  requests.push_back(std::move(request));
  lanes_.control.put(std::move(requests), [reply = std::move(reply)](Answer<std::vector<ControlOutcome>> answers) {
    try {
      reply(std::move(std::move(answers).get().front()));
    } catch (...) {
      reply(std::current_exception());
    }
  });
}

std::vector<ControlOutcome> StoreEngine::commit_controls(std::span<const ControlRequest> requests) {
  std::vector<ControlOutcome> outcomes = store_->control(requests);
  Effects effects;
  for (const ControlOutcome& outcome : outcomes) effects.add(outcome.effects);
  spread(effects);
  sweeper_.clean_requests();
  return outcomes;
}

// ---- workflows

void StoreEngine::commit_turns(std::vector<TurnRequest> requests, Reply<std::vector<TurnOutcome>> reply) {
  std::vector<Turn> turns;
  turns.reserve(requests.size());
  const Time now = store_->now();
  for (TurnRequest& request : requests) {
    turns.push_back(resolve_turn(std::move(request), settings_, options_, ids_.next(now)));
  }
  const std::size_t bytes = bytes_of(turns);
  lanes_.turns.put(std::move(turns), std::move(reply), bytes);
}

std::vector<TurnOutcome> StoreEngine::commit_resolved(std::span<const Turn> turns) {
  ClaimDesk::Loan loan = claims_.lend_late();
  std::vector<TurnOutcome> outcomes = store_->commit_turns(turns, loan.waiters());
  loan.deliver();
  Effects effects;
  Announcements ready, left;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const TurnOutcome& outcome = outcomes[i];
    effects.add(outcome.effects);
    if (outcome.accepted) claimed_ += steps_begun(turns[i]), completed_ += steps_completed(turns[i]);
    if (outcome.run) results_.closed(outcome.run->id, outcome.run);
    if (!outcome.step) {
      if (!outcome.accepted) ++leases_lost_;
      continue;
    }
    count_finished(*outcome.step, ready, left);
    if (is_closed(outcome.step->status)) results_.closed(turns[i].step->token.execution);
  }
  spread(effects);
  announce_finished(std::move(ready), left);
  return outcomes;
}

// Wakes everything that waits for what a verb changed.
void StoreEngine::spread(const Effects& effects) {
  if (effects.empty()) return;
  Announcements ready;
  for (const Closed& closed : effects.closed) {
    results_.closed(closed.id);
    if (closed.kind == Kind::task) ready[{closed.name_space, closed.queue, closed.kind}] += 1;  // its slot is free
  }
  for (const Closed& each : effects.ready) ready[{each.name_space, each.queue, each.kind}] += 1;
  announce(ready);
  if (effects.next_due) sweeper_.due_by(*effects.next_due);
}

std::vector<Event> StoreEngine::history(const std::string& name_space, const ExecutionId& run, std::int64_t after,
                                        std::int32_t limit) {
  if (!store_->find(name_space, run)) return {};
  return store_->history(run, after, limit);
}

std::shared_ptr<Waiting> StoreEngine::wait_workflow(const std::string& name_space, const std::string& workflow_id,
                                                    Duration wait, Reply<std::optional<Execution>> reply) {
  if (stopped_) {
    reply(std::make_exception_ptr(Failure(Failure::Code::stopped, "the engine is shutting down")));
    return nullptr;
  }
  return wait_for_runs(results_, reader_, name_space, workflow_id, wait, std::move(reply),
                       [this, name_space, workflow_id] { return find_workflow(name_space, workflow_id); });
}

// ---- results, sweeps

std::shared_ptr<Waiting> StoreEngine::wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                                  Reply<std::optional<Execution>> reply) {
  if (stopped_) {
    reply(std::make_exception_ptr(Failure(Failure::Code::stopped, "the engine is shutting down")));
    return nullptr;
  }
  return results_.wait(name_space, id, wait, std::move(reply));
}

void StoreEngine::announce(const Announcements& announcements) {
  for (const auto& [key, count] : announcements) claims_.announce(key, count);
}

// ---- read

std::optional<FoundIdentity> StoreEngine::find_identity(const std::string& name_space, const std::string& type,
                                                        const std::optional<Scope>& scope,
                                                        const std::optional<std::string>& queue,
                                                        const std::string& key) {
  return find_key(*store_, name_space, type, scope, queue, key, settings_);
}

bool StoreEngine::release_identity(const std::string& name_space, const IdentityHash& hash) {
  results_.forget_runs();
  return store_->release_identity(name_space, hash);
}

// ---- settings

QueueView StoreEngine::put_queue(const std::string& name_space, const std::string& name,
                                 const QueueSettings& settings) {
  std::lock_guard lock(put_mutex_);
  reload_settings();
  QueueSettings document = settings;
  // Pausing is a separate operation: settings that do not name it leave it as it is.
  if (!document.paused) document.paused = settings_.queue_document(name_space, name).paused;
  store_->put_setting({name_space, SettingDocument::Kind::queue, name, document.to_json()});
  reload_settings();
  return queue(name_space, name);
}

QueueView StoreEngine::set_paused(const std::string& name_space, const std::string& name, bool paused) {
  {
    std::lock_guard lock(put_mutex_);
    reload_settings();
    settings_.refuse_if_file_says_otherwise(name, paused);
    QueueSettings settings = settings_.queue_document(name_space, name);
    settings.paused = paused;
    store_->put_setting({name_space, SettingDocument::Kind::queue, name, settings.to_json()});
    reload_settings();
  }
  return queue(name_space, name);
}

TypeView StoreEngine::put_type(const std::string& name_space, const std::string& name, const TypeSettings& settings) {
  std::lock_guard lock(put_mutex_);
  store_->put_setting({name_space, SettingDocument::Kind::type, name, TypeDocument{settings, true}.to_json()});
  reload_settings();
  return type(name_space, name);
}

TypeView StoreEngine::patch_type(const std::string& name_space, const std::string& name, const Json& patch) {
  std::lock_guard lock(put_mutex_);
  reload_settings();
  const TypeDocument patched = settings_.patched_type(name_space, name, patch);
  store_->put_setting({name_space, SettingDocument::Kind::type, name, patched.to_json()});
  reload_settings();
  return type(name_space, name);
}

void StoreEngine::reload_settings() {
  std::lock_guard lock(reload_mutex_);
  if (!settings_.load(store_->settings())) return;
  store_->set_policies(settings_.policies());
  claims_.announce_everywhere();
  activities_.settings_changed();
}

void StoreEngine::declare_queue(const std::string& name_space, const std::string& name) {
  if (!settings_.queue_view(name_space, name).known) put_queue(name_space, name, {});
}

// Another process changed something. The notice comes on the store's thread and may come often: the reader's thread
// reads, once for all notices that arrived.
void StoreEngine::changed_elsewhere() {
  claims_.announce_everywhere();
  if (refresh_pending_.exchange(true)) return;
  const auto soonest = last_refresh_.load() + kRefreshPause;
  reader_.at(std::max(std::chrono::steady_clock::now(), soonest), [this] { refresh(); });
}

void StoreEngine::refresh() {
  refresh_pending_ = false;  // before reading: what changes from here on causes another refresh
  last_refresh_ = std::chrono::steady_clock::now();
  try {
    if (store_->is_replaced()) begin_anew();
    reload_settings();
    results_.look_again();
  } catch (const std::exception& failure) {
    spdlog::warn("reading what another process changed: {}", failure.what());
    if (store_->is_replaced()) reader_.after(kReopenPause, [this] { changed_elsewhere(); });
  }
}

// Until reopen() the store answers nothing. What was known of it is dropped before that; what follows is as for a new
// one.
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

}  // namespace

std::unique_ptr<LocalEngine> start_engine(std::shared_ptr<Store> store, EngineOptions options) {
  return std::make_unique<StoreEngine>(std::move(store), std::move(options));
}

}  // namespace hapax
