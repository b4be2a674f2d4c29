// The S3 store dies after each single request of each verb in turn. A second actor then finds the same final state as
// without the crash, no second task, and nothing stuck for longer than a lease.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "store/s3/documents/documents.h"
#include "store/s3/documents/envelope.h"
#include "store/s3/memory_objects.h"
#include "store/s3/s3_store.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;

struct Crash {};

// One bucket, and what a scenario has to remember of it.
class World {
 public:
  World() { reopen(); }

  void reopen() { store_ = open_s3_store(objects_, {.pulse = 0ms}); }
  Store& store() { return *store_; }

  // Dies once the n-th request from now is done. `loses_commits`: what it had committed and not fully applied is lost.
  void crash_after(int n, bool loses_commits) {
    left_ = n;
    objects_->on_requests({}, [this, loses_commits](const ObjectRequest&) {
      if (--left_ != 0) return;
      if (loses_commits) objects_->remove(objects_->names("transactions/"));
      throw Crash();
    });
  }
  void recover() {
    objects_->on_requests({}, {});
    clock.advance(61s);
    reopen();
  }

  SubmitOutcome submit(const Submission& submission) { return store().submit({&submission, 1}).at(0); }
  std::vector<Execution> claim(const std::string& queue, bool workflows = false) {
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {queue};
    request.limit = 10;
    request.tasks = !workflows;
    request.workflows = workflows;
    request.secret = test_secret(++secrets_);
    return store().claim({&request, 1}).at(0).executions;
  }
  void finish(const Report& report) { store().finish({&report, 1}); }
  void commit(const Turn& turn) { store().commit_turns({&turn, 1}); }
  ControlOutcome control(ControlRequest::Action action, const std::string& key,
                         const std::function<void(ControlRequest&)>& fill) {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = key;
    request.action = action;
    request.signal = "go";
    request.payload = "1";
    request.fork_workflow_id = "fork";
    request.fork_identity = workflow_identity("default", "fork");
    request.fork_id = test_id(7'000);
    fill(request);
    return store().control({&request, 1}).at(0);
  }
  void start(const std::string& workflow_id, std::uint64_t id) {
    Submission submission = Task("flow").kind(Kind::workflow).queue("flows").id(test_id(id));
    submission.execution.idempotency_key = workflow_id;
    submission.execution.identity = workflow_identity("default", workflow_id);
    submit(submission);
  }
  // A turn of the claimed run that asks for a task, a signal and a timer.
  static Turn first_turn(const Execution& run) {
    Turn turn;
    turn.token = token_of(run);
    turn.seen = run.run.events;
    for (const Event::Kind kind : {Event::Kind::task, Event::Kind::wait_signal, Event::Kind::sleep}) {
      Event event;
      event.kind = kind;
      event.step = static_cast<std::int32_t>(turn.events.size()) + 1;
      if (kind == Event::Kind::task) event.name = "work";
      if (kind == Event::Kind::wait_signal) event.name = "go";
      if (kind == Event::Kind::sleep) event.until = ManualClock::kStart + 24h;
      turn.events.push_back(event);
    }
    turn.starts.push_back({1, Task("work").key("step key")});
    return turn;
  }
  // Workflow "w", suspended on its first turn.
  void start_suspended() {
    start("w", 100);
    commit(first_turn(claim("flows", true).at(0)));
  }

  std::string state();
  std::string missing_hints();

  ManualClock clock;
  std::vector<Execution> claimed;
  std::optional<Report> report;
  std::optional<Turn> turn;

  MemoryObjects& objects() { return *objects_; }

 private:
  std::shared_ptr<MemoryObjects> objects_ = std::make_shared<MemoryObjects>(clock);
  std::unique_ptr<Store> store_;
  std::uint64_t secrets_ = 0;
  std::atomic<int> left_{0};
};

// Everything but times and leases.
std::string World::state() {
  std::ostringstream out;
  for (const Kind kind : {Kind::task, Kind::workflow}) {
    ListFilter filter;
    filter.name_space = "default";
    filter.kind = kind;
    filter.limit = 1000;
    for (const Execution& execution : store().list(filter)) {
      out << execution.id << ' ' << to_string(execution.status) << " result " << execution.result.value_or("none")
          << " errors " << execution.failed_attempts.size() << " steps " << execution.run.steps;
      if (execution.parent) out << " of " << *execution.parent;
      for (const Event& event : store().history(execution.id, 0, 1000))
        out << ' ' << to_string(event.kind) << event.step;
      if (execution.identity) {
        const auto found = store().find_identity(execution.identity->hash);
        out << " key of " << (found ? describe(found->entry.owner) : "nobody") << (found && found->live ? "" : " dead");
      }
      out << '\n';
    }
  }
  for (const QueueCount& count : store().count()) {
    if (count.pending == 0 && count.running == 0) continue;  // known from a failed try
    out << count.queue << ": " << count.pending << " pending, " << count.running << " running\n";
  }
  return out.str();
}

// Nothing is invisible, and nothing locked: all hints of each execution exist.
std::string World::missing_hints() {
  std::string missing;
  const std::vector<std::string> names = objects_->names();
  const std::set<std::string> all(names.begin(), names.end());
  for (const std::string& name : objects_->names("tasks/")) {
    const s3::Envelope envelope = s3::unseal(name, objects_->get(name)->body);
    if (envelope.lock) missing += name + " is still locked\n";
    if (envelope.content.empty() || s3::read_grave(envelope.content)) continue;
    for (const std::string& hint : s3::read_task(envelope.content).hints) {
      if (!all.contains(hint)) missing += hint + " is missing\n";
    }
  }
  return missing;
}

struct Scenario {
  std::string name;
  std::function<void(World&)> set_up;
  std::function<void(World&)> act;          // repeated after the crash, as its caller would
  std::function<void(World&)> settle = {};  // and what follows in any case
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

void sweep(World& world) {
  while (world.store().sweep(100).more) continue;
}

std::vector<Scenario> scenarios() {
  const auto nothing = [](World&) {};
  const auto claim_one = [](World& w) {
    w.submit(Task().id(test_id(1)).key("k"));
    w.claimed = w.claim("work");
  };
  const auto fail_for_good = [=](World& w) {
    claim_one(w);
    w.finish({token_of(w.claimed.at(0)), Report::Failed{{"E", "m"}, false}});
  };
  const auto on = [](std::uint64_t id) { return [id](ControlRequest& r) { r.target = test_id(id); }; };
  const auto on_w = [](ControlRequest& r) { r.workflow_id = "w"; };
  const auto claim_again = [](World& w) {
    sweep(w);
    w.claim("work");
  };
  const auto cancelled_w = [=](World& w) {
    w.start_suspended();
    w.control(ControlRequest::Action::cancel, "before", on_w);
  };
  using Action = ControlRequest::Action;
  return {
      {"Submit", nothing, [](World& w) { w.submit(Task().id(test_id(1))); }},
      {"KeyedSubmit", nothing, [](World& w) { w.submit(Task().id(test_id(1)).key("k")); }},
      {"BatchOfSubmits", nothing,
       [](World& w) {
         const std::vector<Submission> batch{Task().id(test_id(1)).key("a"), Task().id(test_id(2)),
                                             Task().id(test_id(3)).key("a")};
         w.store().submit(batch);
       }},
      {"Takeover", fail_for_good, [](World& w) { w.submit(Task().id(test_id(2)).key("k")); }},
      {"Replace", claim_one, [](World& w) { w.submit(Task().id(test_id(2)).key("k").reuse(Reuse::replace)); },
       claim_again},
      {"ReplacePending", [](World& w) { w.submit(Task().id(test_id(1)).key("k")); },
       [](World& w) { w.submit(Task().id(test_id(2)).key("k").reuse(Reuse::replace)); }},
      {"Claim", [](World& w) { w.submit(Task().id(test_id(1)).key("k")); }, [](World& w) { w.claim("work"); },
       [=](World& w) {
         w.clock.advance(61s);
         claim_again(w);
       }},
      {"Heartbeat", claim_one,
       [](World& w) {
         const Extension extension{token_of(w.claimed.at(0)), 24h};
         w.store().extend({&extension, 1});
       }},
      {"GiveBack", claim_one,
       [](World& w) {
         const Extension extension{token_of(w.claimed.at(0)), 0ms};
         w.store().extend({&extension, 1});
       }},
      {"Finish", claim_one, [](World& w) { w.finish({token_of(w.claimed.at(0)), Report::Completed{"7"}}); }},
      {"FailedAttempt", claim_one,
       [](World& w) { w.finish({token_of(w.claimed.at(0)), Report::Failed{{"E", "m"}, true}}); }},
      {"Cancel", [](World& w) { w.submit(Task().id(test_id(1)).key("k")); },
       [=](World& w) { w.control(Action::cancel, "r", on(1)); }},
      {"Retry", fail_for_good, [=](World& w) { w.control(Action::retry, "r", on(1)); }},
      {"TurnWithSteps",
       [](World& w) {
         w.start("w", 100);
         w.turn = World::first_turn(w.claim("flows", true).at(0));
       },
       [](World& w) { w.commit(*w.turn); }},
      {"StepFinish",
       [](World& w) {
         w.start_suspended();
         w.claimed = w.claim("work");
       },
       [](World& w) { w.finish({token_of(w.claimed.at(0)), Report::Completed{"7"}}); }},
      {"Signal", [](World& w) { w.start_suspended(); }, [=](World& w) { w.control(Action::signal, "r", on_w); }},
      {"CancelWorkflow", [](World& w) { w.start_suspended(); },
       [=](World& w) { w.control(Action::cancel, "r", on_w); }},
      {"Resume", cancelled_w, [=](World& w) { w.control(Action::resume, "r", on_w); }},
      {"Fork", cancelled_w,
       [=](World& w) {
         w.control(Action::fork, "r", [](ControlRequest& r) {
           r.workflow_id = "w";
           r.from_step = 2;
         });
       }},
      {"Sweep", [=](World& w) { claim_one(w), w.clock.advance(61s); }, sweep},
      {"SweepOfATimer", [](World& w) { w.start_suspended(), w.clock.advance(25h); }, sweep},
      {"Purge", [=](World& w) { fail_for_good(w), w.clock.advance(24h * 8); }, [](World& w) { w.store().purge(100); }},
      {"PurgeOfAWorkflow", [=](World& w) { cancelled_w(w), w.clock.advance(24h * 40); },
       [](World& w) {
         w.store().purge(100);
         w.store().purge(100);
       }},
      {"Release", claim_one, [](World& w) { w.store().release_identity("default", key_hash("work", "k")); }},
  };
}

class S3Crash : public testing::TestWithParam<Scenario> {};
INSTANTIATE_TEST_SUITE_P(Verbs, S3Crash, testing::ValuesIn(scenarios()),
                         [](const auto& info) { return info.param.name; });

// In both cases the second actor does the same: acts again, sweeps, and reads.
std::string finish_up(World& world, const Scenario& scenario) {
  world.recover();
  scenario.act(world);
  if (scenario.settle) scenario.settle(world);
  sweep(world);
  world.clock.advance(61s);
  sweep(world);
  world.claim("nothing");
  return world.state();
}

// The differences after a crash at any request; empty if there are none.
std::string first_difference(const Scenario& scenario, bool loses_commits) {
  World undisturbed;
  scenario.set_up(undisturbed);
  scenario.act(undisturbed);
  const std::string expected = finish_up(undisturbed, scenario);

  int n = 0;
  for (bool crashed = true; crashed;) {
    World world;
    scenario.set_up(world);
    world.crash_after(++n, loses_commits);
    crashed = false;
    try {
      scenario.act(world);
    } catch (const Crash&) {
      crashed = true;
    }
    const std::string state = finish_up(world, scenario), missing = world.missing_hints();
    if (state != expected || !missing.empty()) {
      return "dead after request " + std::to_string(n) + ":\n" + state + "rather than\n" + expected + missing;
    }
  }
  return n > 1 ? "" : "it made no request";
}

TEST_P(S3Crash, AfterEachRequestASecondActorFindsTheSameFinalState) {
  EXPECT_EQ(first_difference(GetParam(), false), "");
}

// Tests the check itself.
TEST(S3CrashCheck, FindsAStoreThatLosesItsCommits) {
  for (const Scenario& scenario : scenarios()) {
    if (scenario.name == "StepFinish") {
      EXPECT_EQ(first_difference(scenario, false), "");
      EXPECT_NE(first_difference(scenario, true), "");
    }
  }
}

// ---- many submitters of one key, over a bucket that fails at random

bool dice(unsigned one_in) {
  thread_local std::minstd_rand random(std::random_device{}());
  return random() % one_in == 0;
}

// One request in that many is not made, and for as many the answer is lost.
void fail_at_random(MemoryObjects& objects, unsigned one_in) {
  objects.on_requests(
      [one_in](const ObjectRequest&) {
        if (dice(one_in)) throw Failure(Failure::Code::unavailable, "500");
      },
      [one_in](const ObjectRequest& request) {
        const bool writes = request.verb == ObjectRequest::Verb::put || request.verb == ObjectRequest::Verb::remove;
        if (dice(one_in))
          throw Failure(writes ? Failure::Code::outcome_unknown : Failure::Code::unavailable, "the reply was lost");
      });
}

// As an engine does: repeats until the outcome is known.
template <class Call>
auto until_known(Call call) {
  for (;;) {
    try {
      return call();
    } catch (const Failure& failure) {
      if (!failure.safe_to_retry()) throw;
    }
  }
}

TEST(S3Race, OneOfThirtyTwoSubmittersOfAKeyCreatesWhateverFails) {
  constexpr int kThreads = 32, kRounds = 200;
  ManualClock clock;
  const auto objects = std::make_shared<MemoryObjects>(clock);
  const std::shared_ptr<Store> store = open_s3_store(objects, {.pulse = 0ms});
  fail_at_random(*objects, 50);

  std::vector<std::vector<ExecutionId>> owners(kThreads, std::vector<ExecutionId>(kRounds));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const Submission submission = Task().key("k" + std::to_string(round));
        owners[static_cast<std::size_t>(t)][static_cast<std::size_t>(round)] =
            until_known([&] { return store->submit({&submission, 1}).at(0).execution.id; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  objects->on_requests({}, {});

  std::set<ExecutionId> all;
  for (int round = 0; round < kRounds; ++round) {
    std::set<ExecutionId> of_round;
    for (const auto& mine : owners) of_round.insert(mine[static_cast<std::size_t>(round)]);
    EXPECT_EQ(of_round.size(), 1u) << "round " << round;
    all.insert(of_round.begin(), of_round.end());
  }
  ListFilter filter;
  filter.name_space = "default";
  filter.limit = 100'000;
  EXPECT_EQ(store->list(filter).size(), std::size_t{kRounds});
  EXPECT_EQ(all.size(), std::size_t{kRounds});
}

// Workers lose answers, leases and races: each step of the run ends once, and the run learns of each once.
TEST(S3Race, EachStepOfAFanOutEndsOnceWhateverFails) {
  constexpr int kThreads = 8, kSteps = 64;
  World world;
  world.start("w", 100);
  Turn turn;
  turn.token = token_of(world.claim("flows", true).at(0));
  for (std::int32_t step = 1; step <= kSteps; ++step) {
    Event event;
    event.step = step;
    event.name = "work";
    turn.events.push_back(event);
    turn.starts.push_back({step, Task().max_attempts(1000)});
  }
  // Time runs twenty times as fast: leases end soon, and yet nothing in flight looks a minute old. This starts before
  // the first failure, because a lock of a failed transaction blocks until its time has passed.
  std::atomic<bool> done = false;
  std::thread time([&] {
    for (; !done; std::this_thread::sleep_for(1ms)) world.clock.advance(20ms);
  });
  fail_at_random(world.objects(), 100);
  EXPECT_TRUE(until_known([&] { return world.store().commit_turns({&turn, 1}).at(0).accepted; }));

  const auto closed = [&] {
    const auto events = until_known([&] { return world.store().history(test_id(100), 0, 10'000); });
    return std::count_if(events.begin(), events.end(),
                         [](const Event& event) { return event.kind == Event::Kind::closed; });
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; closed() < kSteps; ++n) {
        ClaimRequest request;
        request.name_space = "default";
        request.queues = {"work"};
        request.limit = 3;
        request.lease = 5s;
        request.secret = test_secret(1'000'000 * (static_cast<std::uint64_t>(t) + 1) + n);
        std::vector<Report> reports;
        try {
          const ClaimOutcome claimed = world.store().claim({&request, 1}).at(0);
          for (const Execution& task : claimed.executions) reports.push_back({token_of(task), Report::Completed{"1"}});
          if (n % 8 == 0) world.store().sweep(100);
        } catch (const Failure&) {
          // What it took is claimable again when its lease ends.
        }
        if (!reports.empty()) until_known([&] { return world.store().finish(reports); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  time.join();
  world.objects().on_requests({}, {});
  EXPECT_EQ(closed(), kSteps);
  std::set<std::int32_t> steps;
  for (const Event& event : world.store().history(test_id(100), 0, 10'000)) {
    if (event.kind == Event::Kind::closed) steps.insert(event.step);
  }
  EXPECT_EQ(steps.size(), std::size_t{kSteps});
  ListFilter filter;
  filter.name_space = "default";
  filter.status = Status::completed;
  filter.limit = 1000;
  EXPECT_EQ(world.store().list(filter).size(), std::size_t{kSteps});
}

}  // namespace
}  // namespace hapax
