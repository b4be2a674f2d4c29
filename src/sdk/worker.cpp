#include "sdk/worker.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <typeinfo>

#include "core/canonical_json.h"
#include "core/json.h"
#include "core/name.h"
#include "sdk/signals.h"

namespace hapax {

std::string TaskContext::id() const { return task_.execution.id.to_string(); }
std::string TaskContext::type() const { return task_.execution.type; }
std::int32_t TaskContext::attempt() const { return task_.execution.attempt; }
std::string TaskContext::effect_key() const { return task_.execution.effect_key(); }
bool TaskContext::cancel_requested() const { return task_.cancel_requested; }

namespace detail {

namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kMaxClaim = 512;
constexpr std::size_t kMaxTypeBytes = 128, kMaxMessageBytes = 16 * 1024;  // of a handler's error
constexpr double kMaxAhead = 1024;
constexpr double kAheadSeconds = 0.02;  // of work, for handlers that take next to no time
constexpr auto kClaimWait = 20s;
constexpr auto kClaimPauseAfterFailure = 500ms;
constexpr auto kTick = 100ms;  // how late a stop from a handler or another thread is seen at most

std::vector<std::string> queues_of(const WorkOptions& options, const std::map<std::string, DeclaredTask>& tasks) {
  std::set<std::string> queues(options.queues.begin(), options.queues.end());
  if (queues.empty()) {
    for (const auto& [type, task] : tasks) queues.insert(task.options.queue);
  }
  if (queues.empty()) throw Error("InvalidRequest", "there is nothing to work on: declare a task, or name a queue");
  return {queues.begin(), queues.end()};
}

std::string default_name() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + std::to_string(getpid());
}

std::string type_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? name.get() : typeid(error).name();
}

// What a program threw, as something that can be kept and sent: short enough, and UTF-8.
std::string presentable(std::string text, std::size_t most) {
  text.resize(std::min(text.size(), most));
  while (!text.empty() && !is_valid_utf8(text) && is_valid_utf8(text.substr(0, text.size() - 1))) text.pop_back();
  if (!is_valid_utf8(text)) {
    std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  return text;
}

Report::Failed failed(const std::string& type, const std::string& message, bool retryable) {
  return {{presentable(type, kMaxTypeBytes), presentable(message, kMaxMessageBytes)}, retryable};
}

}  // namespace

Worker::Worker(AppState& app, const WorkOptions& options)
    : app_(app),
      options_(options),
      tasks_(app.tasks()),
      queues_(queues_of(options, tasks_)),
      name_(options.name.empty() ? default_name() : options.name) {
  if (options_.threads == 0) throw Error("InvalidRequest", "a worker needs at least one thread");
  reports_ = std::make_unique<Lane<Report, FinishOutcome>>(
      [this](std::span<const Report> reports) { return finish(reports); }, kMaxClaim, false);
  for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { handle_tasks(); });
  heartbeat_ = std::thread([this] { keep_leases(); });
}

Worker::~Worker() { stop_threads(); }

void Worker::run() {
  const SignalWatch signals(options_.handle_signals);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!draining_ && (hopeless_ || should_stop() || signals.caught())) {
      draining_ = true;
      const auto claim = claim_;
      lock.unlock();
      if (claim) claim->cancel();
      lock.lock();
    }
    if (draining_ && !claiming_ && held_.empty()) break;
    if (!draining_ && !claiming_ && places() > 0 && Steady::now() >= claim_again_at_) {
      claiming_ = true;
      lock.unlock();
      claim_more();
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kTick);
  }
  lock.unlock();
  stop_threads();
  app_.stop_requested = false;
  if (hopeless_) translating([&] { std::rethrow_exception(hopeless_); });
}

bool Worker::should_stop() const {
  if (app_.stop_requested) return true;
  return options_.until_idle_for && held_.empty() && Steady::now() - last_busy_ >= *options_.until_idle_for;
}

void Worker::stop_threads() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    arrived_.notify_all();
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (heartbeat_.joinable()) heartbeat_.join();
  reports_->stop();
}

// ---- claiming

// How many more tasks there is room for: a free thread each, and some ahead where handlers are quick.
std::int32_t Worker::places() const {
  const double threads = static_cast<double>(options_.threads);
  const double ahead = std::min(threads * std::floor(kAheadSeconds / std::max(seconds_each_, 1e-6)), kMaxAhead);
  const double room = threads + ahead - static_cast<double>(held_.size());
  // Quick ones are fetched in bulk, when half of what is kept ahead is used up.
  if (ahead > 0 && room < (threads + ahead) / 2) return 0;
  return static_cast<std::int32_t>(std::clamp<double>(room, 0, kMaxClaim));
}

void Worker::claim_more() {
  ClaimCall call;
  {
    std::lock_guard lock(mutex_);
    call.limit = std::max(1, places());
  }
  call.name_space = app_.name_space();
  call.queues = queues_;
  call.worker = name_;
  call.lease = options_.lease;
  call.wait = options_.until_idle_for ? std::min<Duration>(kClaimWait, *options_.until_idle_for) : Duration(kClaimWait);
  auto waiting = app_.engine().claim(std::move(call), [this](Answer<std::vector<Execution>> answer) {
    claimed(std::move(answer));
  });
  std::lock_guard lock(mutex_);
  if (claiming_) claim_ = std::move(waiting);
}

void Worker::claimed(Answer<std::vector<Execution>> answer) {
  std::vector<Execution> executions;
  std::exception_ptr hopeless;
  bool failed = false;
  try {
    executions = std::move(answer).get();
  } catch (const Failure& failure) {
    failed = true;
    if (!failure.safe_to_retry()) hopeless = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  claiming_ = false;
  claim_.reset();
  if (failed) claim_again_at_ = Steady::now() + kClaimPauseAfterFailure;
  if (hopeless) hopeless_ = hopeless;
  if (!executions.empty()) last_busy_ = Steady::now();
  for (Execution& execution : executions) {
    auto task = std::make_shared<RunningTask>(std::move(execution));
    held_.emplace(task->token, task);
    queued_.push_back(std::move(task));
  }
  if (executions.size() == 1) {
    arrived_.notify_one();
  } else if (!executions.empty()) {
    arrived_.notify_all();
  }
  changed_.notify_all();
}

// ---- running

void Worker::handle_tasks() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return ended_ || !queued_.empty(); });
    if (queued_.empty()) return;
    const std::shared_ptr<RunningTask> task = std::move(queued_.front());
    queued_.pop_front();
    lock.unlock();
    const auto start = Steady::now();
    Report outcome = run_handler(*task);
    report(task, std::move(outcome), Steady::now() - start);
    lock.lock();
  }
}

Report Worker::run_handler(RunningTask& task) {
  Report report{task.token, Report::Completed{}};
  auto declared = tasks_.find(task.execution.type);
  if (declared == tasks_.end()) declared = tasks_.find(std::string(kAnyType));
  if (declared == tasks_.end()) {
    report.outcome = failed("UnknownType", "this worker has no task '" + task.execution.type + "' declared", true);
    return report;
  }
  if (task.cancel_requested) {  // while it was queued here: cancelled, or another worker's by now
    report.outcome = failed("Cancelled", "it was cancelled before it started", true);
    return report;
  }
  try {
    TaskContext context = task.context();
    const std::string result = declared->second.handler(context, task.execution.input);
    if (!result.empty()) report.outcome = Report::Completed{canonical_json(parse_json(result))};
  } catch (const FinalError& error) {
    report.outcome = failed("FinalError", error.what(), false);
  } catch (const Cancelled& error) {
    report.outcome = failed("Cancelled", error.what(), true);
  } catch (const std::exception& error) {
    report.outcome = failed(type_name(error), error.what(), true);
  } catch (...) {
    report.outcome = failed("unknown", "the handler threw something that is no std::exception", true);
  }
  return report;
}

void Worker::report(const std::shared_ptr<RunningTask>& task, Report report, Steady::duration took) {
  {
    std::lock_guard lock(mutex_);
    const double seconds = std::chrono::duration<double>(took).count();
    seconds_each_ = 0.8 * seconds_each_ + 0.2 * seconds;
  }
  std::vector<Report> reports;
  reports.push_back(std::move(report));
  reports_->put(std::move(reports), [this, task](const Answer<std::vector<FinishOutcome>>&) {
    std::lock_guard lock(mutex_);
    held_.erase(task->token);
    last_busy_ = Steady::now();
    changed_.notify_one();
  });
}

// Reports until the engine has heard: a report may be repeated, and a lease that was lost meanwhile fences it off.
std::vector<FinishOutcome> Worker::finish(std::span<const Report> reports) {
  const auto give_up = Steady::now() + options_.lease;
  for (auto pause = 50ms;; pause = std::min(2 * pause, 2000ms)) {
    try {
      return await<std::vector<FinishOutcome>>([&](auto reply) {
        app_.engine().finish(std::vector<Report>(reports.begin(), reports.end()), std::move(reply));
      });
    } catch (const Failure& failure) {
      if (!failure.safe_to_retry()) return finish_one_by_one(reports, failure.what());
      if (Steady::now() + pause > give_up) throw;
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [&] { return ended_; });
  }
}

// One report that is refused (a result too large to send) must not take the others with it: it fails its task, for good.
std::vector<FinishOutcome> Worker::finish_one_by_one(std::span<const Report> reports, const std::string& why) {
  std::vector<FinishOutcome> outcomes;
  if (reports.size() > 1) {
    for (const Report& report : reports) outcomes.push_back(finish({&report, 1}).at(0));
    return outcomes;
  }
  Report refused{reports[0].token, failed("ReportRefused", why, false)};
  outcomes = await<std::vector<FinishOutcome>>(
      [&](auto reply) { app_.engine().finish({refused}, std::move(reply)); });
  return outcomes;
}

// ---- leases

void Worker::keep_leases() {
  const auto period = std::max<Duration>(options_.lease / 3, Duration(1));
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [&] { return ended_; })) {
    std::vector<Extension> extensions;
    std::vector<std::shared_ptr<RunningTask>> tasks;
    for (const auto& [token, task] : held_) {
      extensions.push_back({token, options_.lease});
      tasks.push_back(task);
    }
    if (extensions.empty()) continue;
    lock.unlock();
    try {
      const auto outcomes = await<std::vector<ExtendOutcome>>(
          [&](auto reply) { app_.engine().heartbeat(std::move(extensions), std::move(reply)); });
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (outcomes[i].cancel_requested || !outcomes[i].ok) tasks[i]->cancel_requested = true;
      }
    } catch (const Failure&) {
      // The next round tries again; a lease that runs out meanwhile fences this worker off.
    }
    lock.lock();
  }
}

}  // namespace detail
}  // namespace hapax
