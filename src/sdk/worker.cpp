#include "sdk/worker.h"
#include "engine/check_request.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/invariant.h"
#include "sdk/overflow.h"
#include "sdk/own_origin.h"
#include "sdk/signals.h"
#include "sdk/thrown.h"

namespace hapax::detail {

namespace {

using namespace std::chrono_literals;

constexpr double kMaxAhead = 3000;
constexpr double kAheadSeconds = 0.02;  // of work, for handlers that take next to no time
constexpr double kAheadOfHandled = 8;   // times as many as have been handled
constexpr auto kClaimWait = 20s;
constexpr auto kNotesEvery = 1s;
constexpr auto kTick = 100ms;  // how late a stop from a handler or another thread is noticed

std::vector<std::string> queues_of(const WorkOptions& options, const std::map<std::string, DeclaredTask>& tasks,
                                   const std::map<std::string, DeclaredWorkflow>& workflows) {
  std::set<std::string> queues(options.queues.begin(), options.queues.end());
  if (queues.empty()) {
    for (const auto& [type, task] : tasks) queues.insert(task.options.queue);
    for (const auto& [type, workflow] : workflows) queues.insert(workflow.options.queue);
  }
  if (queues.empty()) {
    throw Error("InvalidRequest", "there is nothing to work on: declare a task or a workflow, or name a queue");
  }
  return {queues.begin(), queues.end()};
}

// While it lives, work() runs.
class Working {
 public:
  explicit Working(AppState& app) : app_(app) { app_.work_begins(); }
  ~Working() { app_.work_ended(); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  AppState& app_;
};

}  // namespace

Worker::Worker(AppState& app, const WorkOptions& options, OnAttemptEnd on_attempt_end)
    : Worker(app, options, std::move(on_attempt_end), own_origin()) {}

Worker::Worker(AppState& app, const WorkOptions& options, OnAttemptEnd on_attempt_end, WorkerOrigin origin)
    : app_(app),
      options_(options),
      tasks_(app.tasks()),
      turns_(app, options.kept_workflows, options.workflow_stack_bytes),
      queues_(queues_of(options, tasks_, turns_.declared())),
      name_(options.name.empty() ? own_name() : options.name),
      origin_(std::move(origin)),
      lives_(app.opened().hold_worker ? app.opened().hold_worker(name_) : nullptr),
      on_attempt_end_(std::move(on_attempt_end)) {
  if (options_.threads == 0) throw Error("InvalidRequest", "a worker needs at least one thread");
  reports_ = std::make_unique<ReportLane>(app.engine(), app.name_space(), options_.lease);
  for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { handle_tasks(); });
  heartbeat_ = std::thread([this] { keep_leases(); });
}

Worker::~Worker() { stop_threads(); }

void Worker::run() {
  const SignalWatch signals(options_.handle_signals);
  const Working working(app_);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!draining_ && (hopeless_ || should_stop() || signals.caught())) {
      draining_ = true;
      give_back_queued();
      const auto claims = claims_;
      lock.unlock();
      for (const Claiming& claiming : claims) {
        if (claiming.waiting) claiming.waiting->cancel();
      }
      lock.lock();
    }
    if (draining_ && !is_claiming() && held_.empty() && returns_.empty() && returning_ == 0) break;
    if (auto returned = next_return()) {
      lock.unlock();
      send_back(*std::move(returned));
      lock.lock();
      continue;
    }
    if (Claiming* claiming = next_claim()) {
      lock.unlock();
      claim_more(*claiming);
      lock.lock();
      continue;
    }
    if (auto again = turns_to_repeat(); !again.empty()) {
      lock.unlock();
      for (const UnheardTurn& unheard : again) commit_turn(unheard);
      lock.lock();
      continue;
    }
    if (const auto slow = step_to_tell(); slow) {
      lock.unlock();
      tell(slow);
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kTick);
  }
  lock.unlock();
  stop_threads();
  if (hopeless_) translating([&] { std::rethrow_exception(hopeless_); });
}

// There was nothing to do for as long as the options say.
bool Worker::is_idle() const {
  return options_.until_idle_for && asked_ && held_.empty() && Steady::now() - last_busy_ >= *options_.until_idle_for;
}

// A claim in flight ends by itself at the end of the idle time; cancelling it might lose what it was just given.
bool Worker::should_stop() const { return app_.stop_requested || stop_asked_ || (is_idle() && !is_claiming()); }

void Worker::stop_threads() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    arrived_.notify_all();
    ending_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (heartbeat_.joinable()) heartbeat_.join();
  reports_->stop();
}

// ---- claiming

// How many tasks beyond the number of threads there is room for, if handlers have been quick so far.
double Worker::ahead() const {
  if (handled_ == 0) return 0;
  const double threads = static_cast<double>(options_.threads);
  const double enough = threads * std::floor(kAheadSeconds / std::max(seconds_each_, 1e-6));
  return std::min({enough, kAheadOfHandled * static_cast<double>(handled_), kMaxAhead});
}

bool Worker::has_both() const { return !tasks_.empty() && !turns_.declared().empty(); }

// How much room there is: a free thread each, and some ahead.
std::int32_t Worker::places() const {
  const double all = static_cast<double>(options_.threads) + ahead();
  double room = all - static_cast<double>(held_.size());
  // Tasks and turns must not keep each other from being claimed.
  if (!has_both()) {
    for (const Claiming& claiming : claims_) room -= claiming.limit;
  }
  // Quick ones are claimed in bulk, when half of those kept ahead are used up.
  if (ahead() > 0 && room < std::min<double>(all / 2, kMaxClaim)) return 0;
  return static_cast<std::int32_t>(std::clamp<double>(room, 0, kMaxClaim));
}

bool Worker::is_claiming() const {
  return std::any_of(claims_.begin(), claims_.end(), [](const Claiming& claiming) { return claiming.under_way(); });
}

// What to claim next. While there is room, one claim is out for everything this worker can do, or several, separate for
// tasks and turns. If it does only one of them and claims come back full, the next claim is sent before the last one is
// answered.
Worker::Claiming Worker::wanted() const {
  if (draining_ || places() == 0) return {};
  const bool has_turns = !turns_.declared().empty(), has_tasks = !tasks_.empty() || !has_turns;
  const bool apart = ahead() > 0 && has_both();
  const std::ptrdiff_t enough = apart ? kClaimsApart : more_wait_ && !has_both() ? 2 : 1;
  const bool tasks = has_tasks && std::count_if(claims_.begin(), claims_.end(),
                                                [](const Claiming& claiming) { return claiming.tasks; }) < enough;
  const bool turns = has_turns && std::count_if(claims_.begin(), claims_.end(),
                                                [](const Claiming& claiming) { return claiming.turns; }) < enough;
  const std::int32_t room = apart ? std::max(1, places() / 2) : places();
  const std::int32_t limit = std::min(room + (tasks ? passed_over_ : 0), kMaxClaim);
  return {tasks, turns && !(apart && tasks), room, limit, nullptr};
}

// The next claim to make, if there is one.
Worker::Claiming* Worker::next_claim() {
  if (is_idle() || Steady::now() < claim_again_at_) return nullptr;
  Claiming next = wanted();
  if (!next.under_way()) return nullptr;
  const auto idle =
      std::find_if(claims_.begin(), claims_.end(), [](const Claiming& claiming) { return !claiming.under_way(); });
  invariant(idle != claims_.end(), "a claim is made only while a slot is free");
  *idle = std::move(next);
  return &*idle;
}

// What is declared of them; none, which is any, if it is more than a claim may name.
std::vector<std::string> Worker::types_of(bool tasks, bool workflows) const {
  std::set<std::string, std::less<>> types;
  if (tasks) {
    for (const auto& [type, task] : tasks_) types.insert(type);
  }
  if (workflows) {
    for (const auto& [type, workflow] : turns_.declared()) types.insert(type);
  }
  if (types.contains(kAnyType) || types.size() > kMaxClaimTypes) return {};
  return {types.begin(), types.end()};
}

void Worker::claim_more(Claiming& claiming) {
  ClaimCall call;
  {
    std::lock_guard lock(mutex_);
    call.tasks = claiming.tasks;
    call.workflows = claiming.turns;
    call.limit = claiming.limit;
  }
  call.name_space = app_.name_space();
  call.queues = queues_;
  call.types = types_of(call.tasks, call.workflows);
  call.worker = name_;
  call.origin = origin_;
  call.lease = options_.lease;
  call.wait = options_.until_idle_for ? std::min<Duration>(kClaimWait, *options_.until_idle_for) : Duration(kClaimWait);
  if (is_away()) call.wait = Duration(0);  // to learn at once that it is back
  try {
    app_.tell_types();
  } catch (const Failure&) {
    return claimed(claiming, std::current_exception());
  }
  auto waiting = app_.engine().claim(std::move(call), [this, &claiming](Answer<std::vector<Claimed>> answer) {
    claimed(claiming, std::move(answer));
  });
  std::lock_guard lock(mutex_);
  if (claiming.under_way()) claiming.waiting = std::move(waiting);
}

void Worker::claimed(Claiming& claiming, Answer<std::vector<Claimed>> answer) {
  std::vector<Claimed> executions;
  std::exception_ptr hopeless;
  bool failed = false;
  try {
    executions = std::move(answer).get();
    tell_reachable(nullptr);
  } catch (const Failure& failure) {
    failed = true;
    if (!failure.safe_to_retry()) hopeless = std::current_exception();
    tell_reachable(&failure);
  }
  std::lock_guard lock(mutex_);
  const Claiming done = std::exchange(claiming, {});
  asked_ = true;
  if (failed) claim_again_at_ = Steady::now() + kClaimPauseAfterFailure;
  if (hopeless) hopeless_ = hopeless;
  if (!failed) take(done, std::move(executions));
  changed_.notify_one();
}

// ---- running

void Worker::handle_tasks() {
  const OverflowWatch watch;
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return ended_ || !queued_.empty(); });
    if (queued_.empty()) return;
    const auto [task, turn] = std::move(queued_.front());
    queued_.pop_front();
    lock.unlock();
    if (turn) {
      run_steps(task, turn);
    } else if (task->execution.kind == Kind::workflow) {
      run_turn(task);
    } else {
      const auto start = Steady::now();
      Report outcome = run_handler(*declared_for(tasks_, task->execution.type), *task, app_.name_space());
      const auto took = Steady::now() - start;
      note_duration(took);
      tell_attempt(*task, outcome, took);
      if (task->has_unsent_notes() || !follow(task, outcome)) report(task, std::move(outcome), took);
    }
    lock.lock();
  }
}

void Worker::note_duration(Steady::duration took) {
  std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(took).count();
  const double weight = std::max(0.2, 1.0 / static_cast<double>(++handled_));
  seconds_each_ += weight * (seconds - seconds_each_);
}

void Worker::report(const std::shared_ptr<RunningTask>& task, Report report, Steady::duration took) {
  // A handler that stopped because its time was over reports nothing: the engine times the attempt out.
  const auto* error = std::get_if<Report::Failed>(&report.outcome);
  if (error && error->error.type == kCancelled && task->is_over()) {
    if (on_attempt_end_) on_attempt_end_({*task, report, AttemptEnd::Answer::not_asked, took});
    return let_go(*task);
  }
  if (task->has_unsent_notes()) {  // first: afterwards the lease is over
    Extension notes{task->token, options_.lease, app_.name_space()};
    task->take_notes(notes);
    return app_.engine().heartbeat({std::move(notes)}, [this, task, report, took](Answer<std::vector<ExtendOutcome>>) {
      this->report(task, report, took);
    });
  }
  const auto told = on_attempt_end_ ? std::make_shared<const Report>(report) : nullptr;
  reports_->put(std::move(report), [this, task, told, took](Answer<std::vector<FinishOutcome>> answer) {
    using Said = AttemptEnd::Answer;
    Said said = Said::unreachable;
    try {
      said = std::move(answer).get().at(0).accepted ? Said::accepted : Said::lease_lost;
    } catch (const std::exception&) {
      // The lease ends, and another attempt follows.
    }
    if (said == Said::lease_lost) tell_lease_lost(*task);
    if (!told) return let_go(*task);
    on_attempt_end_({*task, *told, said, took});
    let_go(*task);
  });
}

void Worker::let_go(const RunningTask& task) {
  std::lock_guard lock(mutex_);
  held_.erase(task.token);
  last_busy_ = Steady::now();
  if (held_.empty() || wanted().under_way()) changed_.notify_one();
}

// ---- leases

void Worker::keep_leases() {
  const auto period = std::max<Duration>(options_.lease / 3, Duration(1));
  const auto tick = std::min<Duration>(period, kNotesEvery);
  auto next_beat = Steady::now() + period;
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, tick, [&] { return ended_; })) {
    const bool is_beat = Steady::now() >= next_beat;  // of all leases; in between those that have something to say
    if (is_beat) next_beat = Steady::now() + period;
    std::vector<Extension> extensions;
    std::vector<std::shared_ptr<RunningTask>> tasks;
    for (const auto& [token, task] : held_) {
      if (!is_beat && !task->has_unsent_notes()) continue;
      task->take_notes(extensions.emplace_back(Extension{token, options_.lease, app_.name_space()}));
      tasks.push_back(task);
    }
    if (extensions.empty()) continue;
    lock.unlock();
    try {
      const auto outcomes =
          await<std::vector<ExtendOutcome>>([&](auto reply) { app_.engine().heartbeat(extensions, std::move(reply)); });
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const bool was_cancelled = tasks[i]->cancel_requested;
        if (outcomes[i].cancel_requested || !outcomes[i].ok) tasks[i]->cancel_requested = true;
        if (!outcomes[i].ok && !was_cancelled) tell_lease_lost(*tasks[i]);
      }
    } catch (const Failure&) {
      // The next round tries again; a lease that ends before fences this worker off.
      for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i]->put_back_notes(extensions[i]);
    }
    lock.lock();
  }
}

}  // namespace hapax::detail
