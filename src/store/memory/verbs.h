// The verbs of the memory store, each on one item. The caller holds the store's lock.
#pragma once

#include "store/memory/tables.h"

namespace hapax::memory {

SubmitOutcome submit(Tables& tables, const Submission& submission, Time now);
ClaimOutcome claim(Tables& tables, const ClaimRequest& request, Time now);
// Hands out what has become claimable; gives back what was handed out.
std::set<ExecutionId> hand_out(Tables& tables, WaitingClaims& waiters, const std::set<ExecutionId>& ready, Time now);
ExtendOutcome extend(Tables& tables, const Extension& extension, Time now);
FinishOutcome finish(Tables& tables, const Report& report, Time now);
ControlOutcome control(Tables& tables, const ControlRequest& request, Time now);
SweepOutcome sweep(Tables& tables, std::int32_t limit, Time now);
PurgeOutcome purge(Tables& tables, std::int32_t limit, Time now);
std::int64_t purge_requests(Tables& tables, std::int32_t limit, Time now);
Effects end_due(Tables& tables, const ExecutionId& id, Time now);
bool purge(Tables& tables, const ExecutionId& id, Time now);  // one that is past its retention
std::optional<ExecutionId> latest_run(const Tables& tables, const std::string& name_space,
                                      const std::string& workflow_id);
TurnOutcome commit_turn(Tables& tables, const Turn& turn, Time now);
std::vector<Event> events_after(const Tables& tables, const ExecutionId& run, std::int64_t after, std::int32_t limit,
                                PageBudget& budget);
std::optional<Why> why(Tables& tables, const std::string& name_space, const ExecutionId& id, Time now);
void announce(Tables& tables, const WorkerInfo& worker);
std::vector<WorkerInfo> workers(const Tables& tables, const std::string& name_space, Time now);
// As rules::WhyRows::claimers().
std::vector<WorkerInfo> claimers(const Tables& tables, const Execution& pending, Time since, std::int32_t limit);
void forget_workers(Tables& tables, Time now);
Page list(const Tables& tables, const ListFilter& filter);
std::vector<QueueCount> count(const Tables& tables, const std::optional<std::string>& name_space);

}  // namespace hapax::memory
