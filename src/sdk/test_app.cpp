#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/claim.h"
#include "hapax/testing.h"
#include "sdk/app_state.h"
#include "sdk/attempt.h"
#include "sdk/overflow.h"
#include "sdk/test_memory.h"
#include "sdk/turns.h"

namespace hapax::testing {

namespace {

constexpr std::int32_t kBatch = 1000;
constexpr std::size_t kKeptRuns = 1000, kStackBytes = 256 * 1024;
constexpr const char* kNameSpace = "default";

std::optional<Time> earlier(const std::optional<Time>& a, const std::optional<Time>& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// Its position among what can run at the same moment.
auto place(const Claimed& claimed) {
  const Execution& execution = claimed.execution;
  return std::tuple(-execution.priority, execution.run_at, execution.parent_workflow_id,
                    execution.idempotency_key.value_or(""), execution.step, execution.id);
}

}  // namespace

// Everything but claims goes to the engine: the store says when the next claim is possible.
class TestApp::Impl {
 public:
  explicit Impl(const TestOptions& options)
      : options_(options),
        memory_(std::make_shared<detail::TestMemory>(std::chrono::floor<Duration>(options.starts_at))),
        state_(std::make_shared<detail::AppState>(detail::opened(memory_), kNameSpace)) {}

  const std::shared_ptr<detail::AppState>& state() const { return state_; }
  Time now() const { return memory_->clock.now(); }

  // Runs until `done`, moving the time on no further than to `until`. False: nothing more will happen by then.
  template <class Done>
  bool run(Done done, std::optional<Time> until) {
    const detail::OverflowWatch watch;
    const auto tasks = state_->tasks();
    detail::Turns turns(*state_, options_.replay_every_turn ? 0 : kKeptRuns, kStackBytes);
    for (std::size_t ran = 0; !done();) {
      std::optional<Time> next;
      std::vector<Claimed> claims = claim(next);
      if (claims.empty()) {
        if (!next || (until && *next > *until)) return false;
        memory_->clock.move_to(*next);
      }
      for (Claimed& claimed : claims) {
        if (claimed.execution.kind == Kind::workflow) {
          run_turn(turns, claimed);
        } else {
          run_task(tasks, std::move(claimed));
        }
      }
      ran += claims.size();
      if (ran > options_.limit) throw Error("LimitExceeded", "there is still something to run; see TestOptions::limit");
    }
    return true;
  }

  void move_to(Time time) { memory_->clock.move_to(time); }

 private:
  // Everything that can run now, in an order that does not depend on ids, which are random. If there is nothing: when
  // there will be, if that is known.
  std::vector<Claimed> claim(std::optional<Time>& next) {
    SweepOutcome swept = memory_->store->sweep(kBatch);
    while (swept.more) swept = memory_->store->sweep(kBatch);

    ClaimRequest request;
    request.name_space = kNameSpace;
    for (const QueueCount& count : memory_->store->count()) request.queues.push_back(count.queue);
    request.workflows = true;
    request.limit = kBatch;
    request.worker = "test";
    request.secret = LeaseSecret::generate();
    ClaimOutcome outcome = memory_->store->claim({&request, 1}).at(0);
    next = earlier(outcome.next_at, swept.effects.next_due);
    std::vector<Claimed> claims = with_events(std::move(outcome));
    std::sort(claims.begin(), claims.end(), [](const Claimed& a, const Claimed& b) { return place(a) < place(b); });
    return claims;
  }

  void run_task(const std::map<std::string, detail::DeclaredTask>& tasks, Claimed claimed) {
    detail::RunningTask task(std::move(claimed), state_.get());
    const detail::DeclaredTask* declared = detail::declared_for(tasks, task.execution.type);
    if (!declared) {
      throw Error("UnknownTaskType", "task '" + task.execution.type + "' has no handler: declare it with App::task()");
    }
    Report report = detail::run_handler(*declared, task, kNameSpace);
    if (task.has_unsent_notes()) {
      Extension notes{task.token, std::chrono::minutes(1), kNameSpace};
      task.take_notes(notes);
      await<std::vector<ExtendOutcome>>([&](auto reply) { state_->engine().heartbeat({notes}, std::move(reply)); });
    }
    await<std::vector<FinishOutcome>>([&](auto reply) { state_->engine().finish({report}, std::move(reply)); });
  }

  void run_turn(detail::Turns& turns, const Claimed& claimed) {
    TurnRequest turn = turns.run(claimed.execution, claimed.events);
    const auto* stuck = std::get_if<Turn::Stuck>(&turn.end);
    const std::optional<AttemptError> error = stuck ? std::optional(stuck->error) : std::nullopt;
    await<std::vector<TurnOutcome>>([&](auto reply) { state_->engine().commit_turns({turn}, std::move(reply)); });
    if (!error) return;
    throw Error(error->type, "workflow '" + claimed.execution.idempotency_key.value_or("") + "': " + error->message);
  }

  const TestOptions options_;
  const std::shared_ptr<detail::TestMemory> memory_;
  const std::shared_ptr<detail::AppState> state_;
};

TestApp::TestApp(const TestOptions& options) : TestApp(std::make_shared<Impl>(options)) {}

TestApp::TestApp(std::shared_ptr<Impl> impl) : App(impl->state()), impl_(std::move(impl)) {}

void TestApp::mock_json(std::string_view type, detail::Handler handler) {
  impl_->state()->mock(std::string(type), std::move(handler));
}

std::chrono::system_clock::time_point TestApp::now() const { return impl_->now(); }

void TestApp::run_until_closed(const AnyWorkflowHandle& handle) {
  if (impl_->run([&] { return handle.wait_for(Milliseconds(0)); }, std::nullopt)) return;
  throw Error("NothingToDo", "workflow '" + handle.workflow_id() + "' is " + handle.status() +
                                 ", and nothing will happen that lets it go on: does it wait for a signal?");
}

void TestApp::run_until_closed(const AnyHandle& handle) {
  if (impl_->run([&] { return handle.wait_for(Milliseconds(0)); }, std::nullopt)) return;
  throw Error("NothingToDo", "task " + handle.id() + " is " + handle.status() + ", and nobody will run it");
}

void TestApp::run() { advance(Milliseconds(0)); }

void TestApp::advance(Milliseconds duration) {
  const Time until = impl_->now() + duration;
  const auto never = [] { return false; };
  impl_->run(never, until);
  impl_->move_to(until);
  impl_->run(never, until);
}

}  // namespace hapax::testing
