// The verbs of the SQLite store, within the transaction of a batch. Those with their own statements are objects that
// live as long as the connection.
#pragma once

#include <set>
#include <vector>

#include "core/rate.h"
#include "store/rules/claim.h"
#include "store/rules/returned_permits.h"
#include "store/rules/rows.h"
#include "store/sqlite/tables.h"

namespace hapax::sqlite {

// Hands out what has become claimable; gives back what was handed out.
std::set<ExecutionId> hand_out(Batch& batch, WaitingClaims& waiters, const std::set<ExecutionId>& ready);

// Writes something without meaning.
void write_check(Batch& batch);

struct Candidate {
  rules::Rank rank;
  std::int64_t seq = 0;
};

class Claim {
 public:
  explicit Claim(Connection& connection);
  ClaimOutcome operator()(Batch& batch, const ClaimRequest& request);
  void take_back(Batch& batch, const ReturnedPermits& permits);

 private:
  friend class DueTasks;
  friend class QueueScan;

  std::vector<std::string> types_in(std::int64_t queue_no);  // that anything pending is of
  RateState load_rate(std::int64_t queue_no);
  void save_rate(std::int64_t queue_no, const RateState& rate);
  ClaimOutcome handed_before(Batch& batch, const ClaimRequest& request);

  Statement next_priority_, due_, next_run_at_, next_type_, claimed_, rate_, put_rate_;
};

class Requests {
 public:
  explicit Requests(Connection& connection);
  std::optional<PastRequest> find(const std::string& name_space, const std::string& key, Time now);
  void put(const std::string& name_space, const std::string& key, const PastRequest& past, Time now, Time expires_at);

 private:
  Statement find_, put_;
};

class Sweep {
 public:
  explicit Sweep(Connection& connection);
  // Of workers that are dead, leases end now.
  SweepOutcome operator()(Batch& batch, std::int32_t limit, const std::vector<std::string>& dead_workers = {});

 private:
  void end_leases_of(Batch& batch, const std::vector<std::string>& workers);
  void recount_ahead(Batch& batch, Effects& effects);
  void recount_found(Batch& batch, Statement& statement, Effects& effects);

  Statement due_, next_due_, running_, leased_ahead_, delayed_ahead_;
  std::optional<Time> repaired_at_;  // when parked executions were last looked over
};

class Purge {
 public:
  explicit Purge(Connection& connection);
  PurgeOutcome operator()(Batch& batch, std::int32_t limit);
  std::int64_t requests(Batch& batch, std::int32_t limit);

 private:
  std::vector<ExecutionId> over_retention(Batch& batch, std::int32_t limit);

  Statement queues_, closed_, tombstones_, requests_;
};

// Reading. Each is called within one transaction, so that it sees one state of the data.
Inspection inspect(Tables& tables, const std::string& from, std::int32_t limit);
Page list(Tables& tables, const ListFilter& filter);
std::vector<QueueCount> count(Tables& tables, const std::optional<std::string>& name_space);
std::optional<Why> why(Tables& tables, const QueuePolicies& policies, const std::string& name_space,
                       const ExecutionId& id, Time now);
std::optional<FoundIdentity> find_identity(Tables& tables, const QueuePolicies& policies, const IdentityHash& hash,
                                           Time now);
std::vector<SettingDocument> settings(Tables& tables);
std::vector<WorkerInfo> workers(Tables& tables, const std::string& name_space, Time now);
// As rules::WhyRows::claimers().
std::vector<WorkerInfo> claimers(Tables& tables, const Execution& pending, Time since, std::int32_t limit);

void announce(Tables& tables, std::span<const WorkerInfo> workers);
std::int64_t forget_workers(Tables& tables, Time now, std::int32_t limit);  // how many
void put_setting(Tables& tables, const SettingDocument& setting);

}  // namespace hapax::sqlite
