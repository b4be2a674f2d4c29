// An engine for tests: keeps nothing, answers at once or on demand.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "core/canonical_json.h"
#include "engine/engine.h"
#include "http/fake_activities.h"

namespace hapax::http {

class FakeEngine : public Engine {
 public:
  // Set before the server starts.
  bool holds_submissions = false;
  bool holds_reads = false;  // find() does not return before release_reads()
  bool holds_ready = false;  // nor check_ready()
  std::function<void()> on_submit;
  std::optional<Failure> failure;  // thrown by reads, answered by submissions
  std::optional<Refusal> refusal;  // answered by submissions
  bool creates = true;             // false: every submission is a duplicate
  bool ends_waits = false;         // of claims, at once
  ControlOutcome control_outcome;
  bool accepts_finish = true;
  std::vector<Execution> claimable;  // handed out to claims that do not wait
  std::vector<Execution> stored;     // what reads find
  FakeActivities fake_activities;

  static ExecutionId id_of(std::uint8_t n) {
    ExecutionId id;
    id.bytes[15] = n;
    return id;
  }

  static Execution task(std::uint8_t n) {
    Execution execution;
    execution.id = id_of(n);
    execution.name_space = "default";
    execution.type = "t";
    execution.queue = "default";
    return execution;
  }

  void submit(const std::string& name_space, std::vector<SubmitRequest> requests,
              Reply<std::vector<SubmitResult>> reply) override {
    if (on_submit) on_submit();
    std::vector<SubmitResult> results;
    for (const SubmitRequest& request : requests) {
      if (refusal) {
        results.emplace_back(*refusal);
        continue;
      }
      Receipt receipt;
      receipt.created = creates;
      receipt.dry_run = request.dry_run;
      receipt.execution.name_space = name_space;
      receipt.execution.kind = request.kind;
      receipt.execution.type = request.type;
      receipt.execution.queue = request.queue.value_or("default");
      receipt.execution.input = canonical_json(request.input);
      receipt.execution.idempotency_key = request.idempotency_key;
      results.emplace_back(std::move(receipt));
    }
    if (failure) return reply(std::make_exception_ptr(*failure));
    if (!holds_submissions) return reply(std::move(results));
    std::lock_guard lock(mutex_);
    held_.push_back([reply, results = std::move(results)] { reply(results); });
    changed_.notify_all();
  }

  std::shared_ptr<Waiting> claim(ClaimCall call, Reply<std::vector<Claimed>> reply) override {
    if (call.wait > Duration::zero() && !ends_waits) return hold([reply] { reply(std::vector<Claimed>{}); });
    std::vector<Claimed> claimed;
    for (const Execution& execution : claimable) claimed.push_back({execution, {}});
    reply(std::move(claimed));
    return nullptr;
  }

  void heartbeat(std::vector<Extension> extensions, Reply<std::vector<ExtendOutcome>> reply) override {
    reply(std::vector<ExtendOutcome>(extensions.size(), ExtendOutcome{true, true, from_ms(0), {}}));
  }

  void finish(std::vector<Report> reports, Reply<std::vector<FinishOutcome>> reply) override {
    std::vector<FinishOutcome> outcomes(reports.size());
    for (FinishOutcome& outcome : outcomes) outcome.accepted = accepts_finish;
    reply(std::move(outcomes));
  }

  void control(ControlRequest request, Reply<ControlOutcome> reply) override {
    {
      std::lock_guard lock(mutex_);
      last_request_key_ = request.request_key;
    }
    reply(control_outcome);
  }

  std::string last_request_key() {
    std::lock_guard lock(mutex_);
    return last_request_key_;
  }

  void commit_turns(std::vector<TurnRequest> turns, Reply<std::vector<TurnOutcome>> reply) override {
    reply(std::vector<TurnOutcome>(turns.size()));
  }
  std::optional<Execution> find_workflow(const std::string&, const std::string&) override { return std::nullopt; }
  std::vector<Event> history(const std::string&, const ExecutionId&, std::int64_t, std::int32_t) override { return {}; }
  std::shared_ptr<Waiting> wait_workflow(const std::string&, const std::string&, Duration,
                                         Reply<std::optional<Execution>> reply) override {
    reply(std::optional<Execution>());
    return nullptr;
  }

  std::shared_ptr<Waiting> update(UpdateRequest, Duration, Reply<UpdateOutcome> reply) override {
    UpdateOutcome outcome;
    outcome.delivery = control_outcome;
    reply(std::move(outcome));
    return nullptr;
  }

  std::shared_ptr<Waiting> wait_closed(const std::string& name_space, const ExecutionId& id, Duration wait,
                                       Reply<std::optional<Execution>> reply) override {
    auto found = find(name_space, id);
    if (wait > Duration::zero() && found) return hold([reply, found] { reply(found); });
    reply(std::move(found));
    return nullptr;
  }

  std::optional<Values> values(const std::string&, const std::string&) override { return std::nullopt; }
  std::optional<Why> why(const std::string&, const ExecutionId&) override { return std::nullopt; }
  std::vector<WorkerInfo> workers(const std::string&) override { return {}; }
  std::optional<Why> why_workflow(const std::string&, const std::string&) override { return std::nullopt; }
  std::optional<Execution> find(const std::string&, const ExecutionId& id) override {
    block_if(holds_reads);
    if (failure) throw *failure;
    for (const Execution& execution : stored) {
      if (execution.id == id) return execution;
    }
    return std::nullopt;
  }

  Page list(const ListFilter& filter) override {
    PageFiller page(filter.limit);
    for (const Execution& execution : stored) {
      if (!page.add(execution)) break;
    }
    return page.take();
  }

  std::optional<FoundIdentity> find_identity(const std::string&, const std::string&, const std::optional<Scope>&,
                                             const std::optional<std::string>&, const std::string&) override {
    return std::nullopt;
  }
  bool release_identity(const std::string&, const IdentityHash&) override { return false; }
  QueueView queue(const std::string&, const std::string& name) override { return {name, {}, {}, false, {}}; }
  std::vector<QueueView> queues(const std::string&) override { return {{"default", {}, {}, true, {}}}; }
  QueueView put_queue(const std::string&, const std::string& name, const QueueSettings& settings) override {
    return {name, settings, {}, true, {}};
  }
  QueueView set_paused(const std::string&, const std::string& name, bool paused) override {
    QueueView view{name, {}, {}, true, {}};
    view.settings.paused = paused;
    return view;
  }
  TypeView type(const std::string&, const std::string& name) override { return {name, {}, {}, false}; }
  std::vector<TypeView> types(const std::string&) override { return {}; }
  TypeView put_type(const std::string&, const std::string& name, const TypeSettings& settings) override {
    return {name, settings, {}, true};
  }
  TypeView declare_type(const std::string&, const std::string& name, const TypeSettings& settings) override {
    return {name, settings, {}, false};
  }
  TypeView patch_type(const std::string&, const std::string& name, const Json& patch) override {
    return {name, TypeSettings().patched(patch), {}, false};
  }
  Activities& activities() override { return fake_activities; }
  void check_ready() override {
    block_if(holds_ready);
    if (failure) throw *failure;
  }
  EngineCounters counters() override { return {}; }
  std::vector<QueueCount> queue_counts() override {
    if (failure) throw *failure;
    return {{"default", "mail", 3, 2, std::nullopt}};
  }

  // Blocks until that many waits are open, were cancelled, or submissions are held.
  void await_waiting(std::size_t count) {
    await([&] { return waiting_ == count; });
  }
  void await_cancelled(std::size_t count) {
    await([&] { return cancelled_ >= count; });
  }
  void await_held(std::size_t count) {
    await([&] { return held_.size() >= count; });
  }
  void release_held() {
    std::vector<std::function<void()>> held;
    {
      std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (const auto& answer : held) answer();
  }

  void await_blocked(std::size_t count) {
    await([&] { return blocked_ >= count; });
  }
  void release_reads() {
    std::lock_guard lock(mutex_);
    holds_reads = holds_ready = false;
    changed_.notify_all();
  }

 private:
  void block_if(const bool& held) {
    std::unique_lock lock(mutex_);
    if (!held) return;
    ++blocked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held; });
    --blocked_;
  }

  struct FakeWait : Waiting {
    FakeWait(FakeEngine& of, std::function<void()> empty_answer) : engine(of), answer(std::move(empty_answer)) {}
    void cancel() override {
      {
        std::lock_guard lock(engine.mutex_);
        if (ended) return;
        ended = true;
        --engine.waiting_;
        ++engine.cancelled_;
        engine.changed_.notify_all();
      }
      answer();
    }
    FakeEngine& engine;
    std::function<void()> answer;
    bool ended = false;
  };

  std::shared_ptr<Waiting> hold(std::function<void()> empty_answer) {
    std::lock_guard lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    return std::make_shared<FakeWait>(*this, std::move(empty_answer));
  }

  template <class Condition>
  void await(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }

  std::string last_request_key_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0, cancelled_ = 0, blocked_ = 0;
  std::vector<std::function<void()>> held_;
};

}  // namespace hapax::http
