// Claims that are said again: what they were handed before, and still hold.
#include <algorithm>
#include <map>
#include <set>

#include "store/postgres/tables/run_tables.h"
#include "store/postgres/verbs/verbs.h"
#include "store/rules/claim.h"
#include "store/rules/hand_out.h"

namespace hapax::postgres {

namespace {

const Statement kClaimed{"claimed",
                         "SELECT id FROM open WHERE status = 1 AND get_byte(lease_secret, 0) > 127"
                         " AND lease_secret = ANY($1::bytea[])"};

void read_events(Connection& connection, ClaimOutcome& outcome) {
  std::vector<const Execution*> runs;
  for (const Execution& execution : outcome.executions) {
    if (execution.kind == Kind::workflow) runs.push_back(&execution);
  }
  if (runs.empty()) return;
  send_read_news(connection, runs);
  outcome.events = receive_news(connection, runs.size());
  drop_damaged(outcome);
}

bool any_claim_twice(std::span<const ClaimRequest> requests) {
  std::set<LeaseSecret> secrets;
  return std::any_of(requests.begin(), requests.end(), [&](const ClaimRequest& request) {
    return request.repeatable && !secrets.insert(request.secret).second;
  });
}

}  // namespace

std::map<std::size_t, ClaimOutcome> Claim::handed_before(std::span<const ClaimRequest> requests) {
  std::map<LeaseSecret, std::size_t> repeatable;
  Array secrets(Type::bytea);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].repeatable || !repeatable.emplace(requests[i].secret, i).second) continue;
    secrets.raw(requests[i].secret);
  }
  if (repeatable.empty()) return {};
  Parameters parameters;
  parameters.array(std::move(secrets));
  const Rows rows = runner_.run_at_once(kClaimed, parameters);
  if (rows.empty()) return {};
  std::vector<ExecutionId> ids;
  for (int i = 0; i < rows.size(); ++i) ids.push_back(Cells(rows, i).raw<ExecutionId>());
  return runner_.read([&](Workspace& workspace) {
    std::map<std::size_t, ClaimOutcome> outcomes;
    std::vector<Row> found = read_whole(workspace, ids);
    std::sort(found.begin(), found.end(),
              [](const Row& a, const Row& b) { return goes_before(a.execution, b.execution); });
    for (Row& row : found) {
      const auto claim = row.execution.lease_secret ? repeatable.find(*row.execution.lease_secret) : repeatable.end();
      if (claim == repeatable.end() || row.execution.damaged) continue;
      if (!rules::was_handed(requests[claim->second], row.execution, workspace.now())) continue;
      outcomes[claim->second].executions.push_back(std::move(row.execution));
    }
    for (auto& [place, outcome] : outcomes) {
      outcome.more = true;
      read_events(workspace.connection(), outcome);
    }
    return outcomes;
  });
}

// Those that are said again get what they got; the others claim.
std::vector<ClaimOutcome> Claim::operator()(std::span<const ClaimRequest> requests) {
  if (any_claim_twice(requests)) {
    std::vector<ClaimOutcome> outcomes;
    for (const ClaimRequest& request : requests) outcomes.push_back((*this)({&request, 1}).front());
    return outcomes;
  }
  std::map<std::size_t, ClaimOutcome> before = handed_before(requests);
  std::vector<ClaimRequest> others;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].limit <= 0) before.try_emplace(i);  // it asks for that alone
    if (!before.contains(i)) others.push_back(requests[i]);
  }
  if (before.empty()) return claim_new(requests);
  std::vector<ClaimOutcome> claimed = others.empty() ? std::vector<ClaimOutcome>() : claim_new(others);
  std::vector<ClaimOutcome> outcomes;
  auto next = claimed.begin();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto found = before.find(i);
    outcomes.push_back(std::move(found != before.end() ? found->second : *next++));
  }
  return outcomes;
}

}  // namespace hapax::postgres
