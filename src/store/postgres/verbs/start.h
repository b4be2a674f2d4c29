// What a claim writes: attempts that begin.
#pragma once

#include <map>
#include <set>

#include "store/postgres/workspace.h"
#include "store/rules/hand_out.h"

namespace hapax::postgres {

// Inputs that were too long to be read with the rest: all of them in one round trip. The executions must stay where
// they are until they are received.
class LongInputs {
 public:
  void add(Execution& execution);
  bool empty() const { return executions_.empty(); }

  void send(Connection& connection);
  void receive(Connection& connection);  // marks as damaged what is not there any more
  void read(Connection& connection) {
    send(connection);
    receive(connection);
  }

 private:
  std::map<ExecutionId, Execution*> executions_;
};

// Attempts on executions that are stored and locked, gathered.
class Starts {
 public:
  Starts();
  void add(const Execution& started, const RowLocation& location);
  void send(Connection& connection);  // those since the last time

 private:
  Batch started_;
};

// Hands out some of what the work on a workspace has made claimable, before it is written; gives back what was handed
// out.
std::set<ExecutionId> hand_out(Workspace& workspace, WaitingClaims& waiters, const std::set<ExecutionId>& ready);

// The same for the outcomes of a verb.
template <class Item, class Outcome>
void hand_out(Workspace& workspace, WaitingClaims& waiters, std::span<const Item> items,
              std::vector<Outcome>& outcomes) {
  waiters.outcomes.clear();  // of a failed try
  if (!waiters.may_be_any()) return;
  forget_handed(outcomes, hand_out(workspace, waiters, made_ready(items, outcomes)));
}

}  // namespace hapax::postgres
