// The verbs of the PostgreSQL store.
#pragma once

#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "store/postgres/connection/runner.h"
#include "store/postgres/tables/scan_backoff.h"
#include "store/rules/returned_permits.h"

namespace hapax::postgres {

class Submit {
 public:
  enum class Expected { all_new, mostly_new, mostly_known };

  explicit Submit(Runner& runner) : runner_(runner) {}
  std::vector<SubmitOutcome> operator()(std::span<const Submission> submissions, WaitingClaims& waiters);

 private:
  Runner& runner_;
  std::atomic<Expected> expected_ = Expected::mostly_new;  // as the last ones were
};

// Gives a queue its permits back, within the transaction of the workspace.
void take_back(Workspace& workspace, const ReturnedPermits& permits);
std::vector<ExtendOutcome> extend(Runner& runner, std::span<const Extension> extensions);
std::vector<FinishOutcome> finish(Runner& runner, std::span<const Report> reports, WaitingClaims& waiters);
std::vector<TurnOutcome> commit_turns(Runner& runner, std::span<const Turn> turns, WaitingClaims& waiters);
std::vector<ControlOutcome> control(Runner& runner, std::span<const ControlRequest> requests);

class Claim {
 public:
  explicit Claim(Runner& runner) : runner_(runner) {}
  std::vector<ClaimOutcome> operator()(std::span<const ClaimRequest> requests);

  // The limits of concurrency keys may have changed: what is waiting for a slot is to be looked at again.
  void limits_changed() { unpark_ = true; }
  // Something may be ready before the place at which the last scan ended.
  void forget_positions();
  // Since it was last asked: whether others may have been kept from what was left then.
  bool take_left_some() { return left_some_.exchange(false); }

 private:
  friend class DueTasks;
  friend class QueueScan;

  // A place in the ready index of a queue, as of highest priority and then run_at. No priority is as high as that of
  // one that is not known.
  struct Position {
    std::int32_t priority = std::numeric_limits<std::int32_t>::max();
    Time run_at = from_ms(0);

    bool is_known() const { return priority != std::numeric_limits<std::int32_t>::max(); }
  };
  // Of a type in a queue, and of a queue, by this process; none of it has to be right.
  struct KnownType {
    bool is_full = false;  // the last claim of it alone was given all it asked for
    Position last;         // where the last scan ended
  };
  struct Known {
    bool has_keys = false;     // tasks with a concurrency key were met
    bool has_damaged = false;  // the last scan met tasks that cannot be handed out
    std::map<std::string, KnownType> types;
    ScanBackoff pace;
  };
  struct KeyMet {};  // a task with a concurrency key, in a queue that was not locked for it

  static bool has_limits(const QueuePolicy& policy) { return policy.max_running || policy.rate_limit; }

  // Of the requests that were made before and still hold what they were handed: that, by their place.
  std::map<std::size_t, ClaimOutcome> handed_before(std::span<const ClaimRequest> requests);
  std::vector<ClaimOutcome> claim_new(std::span<const ClaimRequest> requests);

  // The queue of the one request, if it may be served the short way.
  std::optional<std::int32_t> short_way(std::span<const ClaimRequest> requests);
  ClaimOutcome take_due(const ClaimRequest& request, std::int32_t queue_no);
  ClaimOutcome keep_what_fits(std::vector<Row> taken, std::int32_t queue_no);

  std::vector<ClaimOutcome> long_way(std::span<const ClaimRequest> requests);
  std::vector<ClaimOutcome> run(Connection& connection, std::span<const ClaimRequest> requests, bool unpark);
  bool has_keys(std::int32_t queue_no);
  void set_keys(std::int32_t queue_no, bool has_keys);
  void set_damaged(std::int32_t queue_no, bool has_damaged);
  void set_full(std::int32_t queue_no, const std::string& type, bool is_full);
  KnownType& known_type(std::int32_t queue_no, const std::string& type);  // under the lock
  // The types whose next scan does not begin at the beginning. Nothing: a full scan is allowed, which finds them all.
  std::optional<std::vector<std::string>> known_types(std::int32_t queue_no);
  Position begin_of(std::int32_t queue_no, const std::string& type);  // of the next scan
  void scanned(std::int32_t queue_no, ScanBackoff::Clock::duration time, int rows);
  Duration wait_for_scan(std::int32_t queue_no);  // from the beginning
  void ended_at(std::int32_t queue_no, const Execution& last);

  Runner& runner_;
  std::atomic<bool> unpark_ = true;
  std::atomic<bool> left_some_ = false;
  CallMutex taking_;     // the short way
  CallMutex unparking_;  // the long way
  std::mutex mutex_;
  std::map<std::int32_t, Known> queues_;
};

class Sweep {
 public:
  explicit Sweep(Runner& runner) : runner_(runner) {}
  SweepOutcome operator()(std::int32_t limit);

 private:
  struct Found {
    std::vector<ExecutionId> due;
    std::optional<Time> next_due;
    Time now;
  };
  Found look(Workspace& workspace, std::int32_t limit);

  Runner& runner_;
  CallMutex mutex_;               // one at a time
  ScanBackoff pace_;              // of looks from the beginning, as of claims
  ScanBackoff window_pace_;       // of the others
  std::optional<Time> swept_to_;  // nothing was due before, when it last looked
};
PurgeOutcome purge(Runner& runner, std::int32_t limit);
std::int64_t purge_requests(Runner& runner, std::int32_t limit);

std::vector<std::optional<Execution>> find_all(Runner& runner, const std::string& name_space,
                                               std::span<const ExecutionId> ids);
std::vector<Row> read_whole(Workspace& workspace, std::span<const ExecutionId> ids);  // in no order
// Whether a look through what runs anywhere is shorter than one through all that the namespace has. Costs no more than
// a few times the shorter one.
bool fewer_run_than_are_stored(Workspace& workspace, const std::string& name_space);
Page list(Runner& runner, const ListFilter& filter);
Inspection inspect(Runner& runner, const std::string& from, std::int32_t limit);
std::vector<QueueCount> count(Runner& runner, const std::optional<std::string>& name_space);
std::optional<Why> why(Runner& runner, const std::string& name_space, const ExecutionId& id);
std::optional<FoundIdentity> find_identity(Runner& runner, const IdentityHash& hash);
std::vector<std::optional<ExecutionId>> owners(Runner& runner, std::span<const OwnerQuery> queries);
std::vector<Event> history(Runner& runner, const ExecutionId& run, std::int64_t after, std::int32_t limit);
std::vector<SettingDocument> settings(Runner& runner);

bool release_identity(Runner& runner, const std::string& name_space, const IdentityHash& hash);
void announce(Runner& runner, std::span<const WorkerInfo> workers);
std::vector<WorkerInfo> workers(Runner& runner, const std::string& name_space);
// As rules::WhyRows::claimers().
std::vector<WorkerInfo> claimers(Connection& connection, const Execution& pending, Time since, std::int32_t limit);
std::int64_t forget_workers(Workspace& workspace, std::int32_t limit);  // how many

void put_setting(Runner& runner, const SettingDocument& setting);
void write_check(Runner& runner);

}  // namespace hapax::postgres
