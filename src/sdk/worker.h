// The worker: claims tasks and turns, runs them on threads, extends their leases, and reports their outcomes.
//
//   claim ─▶ queue ─▶ N threads ─▶ tasks: report lane ─▶ finish
//                        ▲         turns: commit
//                heartbeat thread
//
// Claims ask for as many as the threads can start at once; for very quick handlers, for some 20 ms of work ahead, so
// that neither claims nor reports are made one by one. A worker of workflows then has several claims out, separate for
// tasks and turns: while one is being answered, another still waits, and may be handed what a commit makes claimable. A
// worker of only tasks or only workflows has two out while they come back full.
//
// A task of a type that is not declared here is given back, unstarted, for a worker that has it. If the claim got
// nothing else, this worker claims with a back-off, and for as many more as it skipped, so that they do not hide what
// waits behind them. What is not started when the worker stops is given back, too.
//
// A step that is claimable at once, without limits, runs within the turn that asks for it, and is committed with it:
// see worker_turns.cpp.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sdk/app_state.h"
#include "sdk/attempt.h"
#include "sdk/report_lane.h"
#include "sdk/turns.h"

namespace hapax::detail {

// How an attempt ended here, and what the engine answered. Called on any of the worker's threads.
struct AttemptEnd {
  enum class Answer : std::uint8_t {
    accepted,
    lease_lost,   // nothing was changed: another worker has the attempt, or its task is closed
    unreachable,  // no answer as long as the lease lasted
    not_asked     // its time was over: the engine ends it
  };

  const RunningTask& task;
  const Report& report;
  Answer answer;
  std::chrono::steady_clock::duration took;
};

class Worker {
 public:
  using OnAttemptEnd = std::function<void(const AttemptEnd&)>;

  Worker(AppState& app, const WorkOptions& options, OnAttemptEnd on_attempt_end = {});
  // One that is more than a user of this library, and says so.
  Worker(AppState& app, const WorkOptions& options, OnAttemptEnd on_attempt_end, WorkerOrigin origin);
  ~Worker();

  // Until the app is stopped, a signal arrives, or there was nothing to do for as long as the options say.
  void run();

  // Makes run() return as App::stop() does, but only that of this worker. From any thread.
  void stop() { stop_asked_ = true; }

 private:
  using Steady = std::chrono::steady_clock;

  static constexpr Duration kFirstPause{50}, kLongestPause{2000};  // before the same is reported again
  static constexpr Duration kClaimPauseAfterFailure{500};
  static constexpr Duration kFirstUnknownPause{50}, kLongestUnknownPause{2000};  // before the next claim
  static constexpr std::int32_t kMaxClaim = 1000;
  static constexpr std::size_t kClaimsApart = 4;  // of tasks and of turns each, if they are separate

  // A turn that the engine has not answered yet.
  struct UnheardTurn {
    std::shared_ptr<RunningTask> task;
    std::shared_ptr<const TurnRequest> request;
    std::function<void(const TurnOutcome&)> then = {};  // once it was answered; absent: the turn is over
    Steady::time_point again_at = {}, give_up_at = {};
    Duration pause = kFirstPause;
  };

  // What a thread runs next: a task, a turn, or the rest of an unfinished turn.
  struct Queued {
    std::shared_ptr<RunningTask> task;
    std::shared_ptr<OpenTurn> turn;
  };

  // A step that runs within the turn that asks for it. Under the lock.
  struct StepInTurn {
    std::shared_ptr<RunningTask> task;  // of the turn
    std::shared_ptr<RunningTask> step;
    std::shared_ptr<OpenTurn> turn;
    Steady::time_point began = Steady::now();
    // It took too long, or has failed, so its turn is committed without it: from then on it is a task like others.
    bool is_told = false;
    bool is_known = false;           // that was answered
    std::optional<Report> end = {};  // before that
  };

  void handle_tasks();
  void note_duration(Steady::duration took);
  void report(const std::shared_ptr<RunningTask>& task, Report report, Steady::duration took);
  void run_turn(const std::shared_ptr<RunningTask>& task);
  void run_steps(const std::shared_ptr<RunningTask>& task, const std::shared_ptr<OpenTurn>& turn);
  std::shared_ptr<StepInTurn> begin_step(const std::shared_ptr<RunningTask>& task,
                                         const std::shared_ptr<OpenTurn>& turn);
  bool end_step(const std::shared_ptr<StepInTurn>& step, Report report);
  bool may_begin(OpenTurn& turn) const;
  void keep_unfinished(const std::shared_ptr<RunningTask>& task, const std::shared_ptr<OpenTurn>& turn,
                       TurnRequest done);
  void end_turn(const std::shared_ptr<RunningTask>& task, OpenTurn& turn);
  std::shared_ptr<StepInTurn> step_to_tell();
  void tell(const std::shared_ptr<StepInTurn>& step);
  bool follow(const std::shared_ptr<RunningTask>& task, const Report& report);
  void followed(const std::shared_ptr<RunningTask>& task, const TurnRequest& turn,
                Answer<std::vector<TurnOutcome>> answers);
  void commit_turn(const UnheardTurn& turn);
  void repeat_later(UnheardTurn turn, const Failure& failure);
  std::vector<UnheardTurn> turns_to_repeat();
  void let_go(const RunningTask& task);

  // Attempts to give back, as if they had never been claimed.
  struct Return {
    std::vector<LeaseToken> tokens;
    Steady::time_point give_up_at = {};  // their leases have ended by then
    Steady::time_point again_at = {};
    Duration pause = kFirstPause;
  };
  void give_back(const RunningTask& task);
  void give_back(LeaseToken token);
  void give_back_queued();
  std::optional<Return> next_return();
  void send_back(Return returned);

  struct Claiming {
    bool tasks = false, turns = false;  // that it asks for; neither: it is not under way
    std::int32_t room = 0;              // for so many
    std::int32_t limit = 0;             // and claims this many, because some will be skipped
    std::shared_ptr<Waiting> waiting;

    bool under_way() const { return tasks || turns; }
  };

  Claiming wanted() const;
  Claiming* next_claim();
  std::vector<std::string> types_of(bool tasks, bool workflows) const;
  void claim_more(Claiming& claiming);
  void claimed(Claiming& claiming, Answer<std::vector<Claimed>> answer);
  void take(const Claiming& claiming, std::vector<Claimed> executions);
  void back_off_from_unknown(const Claiming& claiming, std::int32_t taken, std::int32_t unknown);
  void tell_unknown(const std::string& type);
  void tell_attempt(const RunningTask& task, const Report& report, Steady::duration took) const;
  void tell_lease_lost(const RunningTask& task) const;
  void tell_reachable(const std::exception* failure);
  bool is_away() const;  // the engine, when it was last asked
  bool is_claiming() const;
  bool has_both() const;
  double ahead() const;
  std::int32_t places() const;

  void keep_leases();
  bool is_idle() const;
  bool should_stop() const;
  void stop_threads();

  AppState& app_;
  const WorkOptions options_;
  const std::map<std::string, DeclaredTask> tasks_;
  Turns turns_;
  const std::vector<std::string> queues_;
  const std::string name_;
  const WorkerOrigin origin_;
  const std::shared_ptr<void> lives_;  // see Opened::hold_worker
  const OnAttemptEnd on_attempt_end_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;  // a task to run, or the end
  std::condition_variable changed_;  // only the run loop has something to do
  std::condition_variable ending_;   // for who waits for the end: ended_
  std::deque<Queued> queued_;
  std::set<std::shared_ptr<StepInTurn>> in_turns_;
  std::map<LeaseToken, std::shared_ptr<RunningTask>> held_;  // queued, running or not yet reported
  std::vector<UnheardTurn> unheard_;                         // to be committed again
  std::vector<Return> returns_;                              // to be given back
  std::size_t returning_ = 0;                                // calls that give back, under way
  std::int32_t passed_over_ = 0;                             // tasks of unknown types that the last claim met
  Duration unknown_pause_ = kFirstUnknownPause;
  std::set<std::string> unknown_types_;  // that were reported
  std::atomic<bool> follows_ = true;     // sends turns with the ends of the steps that they follow
  std::array<Claiming, 2 * kClaimsApart> claims_;
  bool asked_ = false;      // for work, and was answered
  bool more_wait_ = false;  // the last claim was given all that it asked for
  bool draining_ = false;
  bool ended_ = false;
  std::atomic<bool> stop_asked_ = false;
  std::optional<Steady::time_point> away_since_;  // the engine does not answer claims
  std::exception_ptr hopeless_;                   // why claiming will never work: a wrong token, a damaged store
  std::int64_t handled_ = 0;                      // tasks and turns
  double seconds_each_ = 0;                       // a handler takes, on average of late
  Steady::time_point last_busy_ = Steady::now();
  Steady::time_point claim_again_at_ = {};  // not before: the engine could not be reached
  std::vector<std::thread> threads_;
  std::thread heartbeat_;
  std::unique_ptr<ReportLane> reports_;
};

}  // namespace hapax::detail
