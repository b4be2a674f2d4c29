// The worker of the C ABI: claims, heartbeats and reports on threads of its own; the program runs the code.
//
//   credit ─▶ claim ─▶ completion ─▶ (the program) ─▶ finish ─▶ report lane
//                                                   └▶ turn   ─▶ commit, or a step within the turn: worker_turns.cpp
//
// The program says how many tasks and turns it has room for, and claims never ask for more. Nothing here waits for the
// program, and no function that the program calls waits for the engine.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capi/completion_queue.h"
#include "core/json.h"
#include "engine/engine.h"
#include "engine/timer.h"
#include "sdk/attempt.h"
#include "sdk/report_lane.h"

namespace hapax::capi {

struct WorkerOptions {
  std::string name;
  std::vector<std::string> queues;
  std::optional<std::set<std::string>> types;      // of tasks; absent: all
  std::optional<std::set<std::string>> workflows;  // likewise
  Duration lease{60'000};
  WorkerOrigin origin;
};

// From the options of hapax_worker_new. Throws InvalidField or InvalidJson.
WorkerOptions read_worker_options(const char* json);

// Throws InvalidField for text that is no JSON.
Json parse_given(std::string_view text);

// An outcome or a turn as the program words it, with a lease, which the parsers of src/wire ask for.
Json with_lease(Json document);

// Where a worker works.
struct Workplace {
  std::shared_ptr<Engine> engine;
  std::string name_space;
  std::shared_ptr<void> lives = nullptr;  // see Opened::hold_worker
};

// Safe to use from any thread.
class Worker {
 public:
  Worker(Workplace place, WorkerOptions options, std::shared_ptr<CompletionQueue> queue);
  ~Worker() { stop(); }

  // Before anything else: its completions carry the handle.
  void start(hapax_worker* handle);

  void credit(std::int32_t tasks, std::int32_t turns);
  // An outcome as in POST /v1/claims/finish, without the lease; null: given back unstarted.
  void finish(std::uint64_t claim, const char* outcome, std::size_t size);
  // A turn as in POST /v1/claims/turns, without the lease; null: given back.
  void turn(std::uint64_t claim, const char* turn, std::size_t size);
  // No more claims; says so once everything is reported.
  void drain();

  // Ends the threads. What the program was told of and has not reported runs out of its lease. Idempotent. The engine
  // must still run.
  void stop();

  bool has_ended() const { return has_ended_; }

 private:
  using Steady = std::chrono::steady_clock;

  enum Line : std::uint8_t { tasks, turns };

  // Claims of one kind.
  struct Claiming {
    std::int32_t credit = 0;    // that no claim asks for
    std::int32_t reserved = 0;  // that claims under way ask for
    std::int32_t held = 0;      // with the program
    std::map<std::uint64_t, std::shared_ptr<Waiting>> under_way;
    bool is_scheduled = false;
    Steady::time_point answered_at = {};
  };

  struct StepInTurn;

  // A claim that the program has, or whose report is not answered yet.
  struct Held {
    Held(std::uint64_t no, Line of, Claimed claimed) : number(no), line(of), task(std::move(claimed)) {}

    const std::uint64_t number;
    const Line line;
    const Steady::time_point delivered_at = Steady::now();
    detail::RunningTask task;
    std::atomic<bool> is_drained = false;  // the program has seen it

    // Under the worker's lock.
    bool has_lease = true;
    bool is_with_program = true;
    bool is_counted = true;                          // against the credit
    std::optional<TurnRequest> done = std::nullopt;  // of a turn: up to the step that ended within it
    std::shared_ptr<StepInTurn> within = nullptr;    // of a step
    std::optional<Timer::Key> time_over = std::nullopt;
  };
  using HeldClaim = std::shared_ptr<Held>;

  // A step that runs within the turn that asks for it.
  struct StepInTurn {
    HeldClaim turn, step;
    std::shared_ptr<TurnRequest> request;      // the step is its last command
    bool is_told = false;                      // it is committed as running
    bool is_known = false;                     // and that was answered
    std::optional<Report> end = std::nullopt;  // reported before that
    bool is_given_back = false;                // likewise
  };

  // ---- claiming
  void claim_at(Line line, Steady::time_point time);
  void claim_more(Line line);
  std::int32_t next_limit(Line line);
  void send_claim(Line line, std::int32_t limit);
  void claimed(Line line, std::uint64_t call, std::int32_t limit, Answer<std::vector<Claimed>> answer);
  const std::optional<std::set<std::string>>& types_of(Line line) const;  // absent: all
  bool knows(const Execution& execution) const;
  HeldClaim hold(Line line, Claimed claimed);
  void deliver(const HeldClaim& held);
  void fail(const std::exception_ptr& why);

  // ---- reporting
  HeldClaim take_from_program(std::uint64_t claim, Line line);
  void report(const HeldClaim& held, Report report);
  void give_back(const HeldClaim& held);
  void release(const HeldClaim& held);
  void lose(const HeldClaim& held);
  void refuse(std::uint64_t claim, const std::exception_ptr& why);
  void tell(std::int32_t kind, std::uint64_t claim, http::Response response = http::json_response(200, "{}"));
  bool is_quiet() const;
  void end_if_quiet();
  void answered();

  // ---- turns: worker_turns.cpp
  bool may_begin(const Held& held, const TurnRequest& request, std::int64_t waits_for) const;
  void run_turn(const HeldClaim& held, std::shared_ptr<TurnRequest> request, std::int64_t waits_for);
  bool begin_step(const HeldClaim& held, const std::shared_ptr<TurnRequest>& request);
  void end_step(const HeldClaim& step, Report report);
  void continue_turn(const std::shared_ptr<StepInTurn>& step, const Report::Completed& completed);
  void tell_step(const std::shared_ptr<StepInTurn>& step);
  void commit_unfinished(const HeldClaim& held, TurnRequest done, std::function<void()> then);
  void end_turn(const HeldClaim& held, std::shared_ptr<TurnRequest> request);
  using Committed = std::function<void(const TurnOutcome&)>;
  struct Commit;
  void commit(const std::shared_ptr<Commit>& commit);
  void commit_failed(const std::shared_ptr<Commit>& commit, const Failure& failure);
  void commit_again();
  void remember(const ExecutionId& run);
  void forget(const ExecutionId& run);

  // ---- leases
  void keep_leases();
  std::vector<HeldClaim> take_back_unseen(Steady::time_point delivered_by);
  struct Return {
    LeaseToken token;
    Steady::time_point give_up_at;
  };
  void send_returns(std::vector<Return> returns);
  void extend(const std::vector<HeldClaim>& claims);

  const Workplace place_;
  const WorkerOptions options_;
  const std::shared_ptr<CompletionQueue> queue_;
  hapax_worker* handle_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // for the heartbeat thread, and for who waits for the end
  std::array<Claiming, 2> claiming_;
  std::uint64_t last_call_ = 0;
  std::unordered_map<std::uint64_t, HeldClaim> held_;
  std::vector<Return> returns_;
  Steady::time_point return_again_at_ = {};
  std::vector<std::shared_ptr<Commit>> unheard_;  // turns to be committed again
  // Calls of the engine under way, besides reports, and what is done with their answers. As long as there are some, the
  // worker is there.
  std::size_t asking_ = 0;
  std::unordered_set<ExecutionId> own_runs_;  // whose last turn was this worker's
  std::deque<ExecutionId> own_runs_in_order_;
  Steady::time_point claim_again_at_ = {};
  Duration unknown_pause_{0};
  bool is_draining_ = false;
  bool is_stopping_ = false;
  std::optional<http::Response> failure_;  // why it cannot claim
  std::atomic<bool> has_ended_ = false;

  std::unique_ptr<detail::ReportLane> reports_;
  std::thread heartbeat_;
  Timer timer_;
};

}  // namespace hapax::capi
