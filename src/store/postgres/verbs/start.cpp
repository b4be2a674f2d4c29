#include "store/postgres/verbs/start.h"

#include <fmt/format.h>

#include "store/postgres/tables/run_tables.h"
#include "store/postgres/tables/sealed.h"

namespace hapax::postgres {

namespace {

std::string start_sql() {
  std::string assignments = fmt::format("status = {}", static_cast<int>(Status::running));
  for (const Column& column : std::span(start_rows().columns).subspan(2)) {
    assignments += fmt::format(", {0} = g.{0}", column.name);
  }
  // `IS TRUE` keeps the planner off the id index.
  return fmt::format("UPDATE open o SET {} FROM {} WHERE o.ctid = g.location AND (o.id = g.id) IS TRUE", assignments,
                     unnest(start_rows(), 1, "g"));
}

const Statement kStart{"start", start_sql()};

const Statement kReadInputs{"read_inputs", "SELECT id, input FROM executions WHERE id = ANY($1::uuid[])"};

// Of workflows: the events that they are handed out with, and the input where it was not locked with the rest.
void complete(Connection& connection, WaitingClaims& waiters) {
  std::vector<const Execution*> runs;
  LongInputs without_input;
  for (ClaimOutcome& outcome : waiters.outcomes) {
    for (Execution& execution : outcome.executions) {
      if (execution.kind == Kind::workflow) runs.push_back(&execution);
      if (execution.input.empty()) without_input.add(execution);
    }
  }
  if (!runs.empty()) send_read_news(connection, runs);
  if (!without_input.empty()) without_input.send(connection);
  if (!runs.empty()) {
    auto all = receive_news(connection, runs.size());
    auto news = all.begin();
    for (ClaimOutcome& outcome : waiters.outcomes) {
      for (std::vector<Event>& events : outcome.events) events = std::move(*news++);
    }
  }
  if (!without_input.empty()) without_input.receive(connection);
  for (ClaimOutcome& outcome : waiters.outcomes) drop_damaged(outcome);
}

}  // namespace

void LongInputs::add(Execution& execution) { executions_.emplace(execution.id, &execution); }

void LongInputs::send(Connection& connection) {
  Array ids(Type::uuid);
  for (const auto& [id, execution] : executions_) ids.raw(id);
  Parameters parameters;
  connection.send(kReadInputs, parameters.array(std::move(ids)));
}

void LongInputs::receive(Connection& connection) {
  const Rows rows = connection.receive();
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto id = cells.raw<ExecutionId>();
    unseal_input(*executions_.at(id), cells.bytes());
  }
  for (const auto& [id, execution] : executions_) {
    if (execution->input.empty()) execution->damaged = true;
  }
}

Starts::Starts() : started_(start_rows()) {}

void Starts::add(const Execution& started, const RowLocation& location) {
  started_.begin_row();
  started_.next().raw(location);
  started_.next().raw(started.id);
  started_.next().time_if(started.due_at());
  started_.next().integer(started.attempt);
  started_.next().time_if(started.started_at);
  started_.next().raw_if(started.lease_secret);
  started_.next().time_if(started.lease_expires_at);
  started_.next().time_if(started.attempt_ends_by);
  started_.next().bytes(started.worker);
}

void Starts::send(Connection& connection) {
  send_silently(connection, kStart, std::exchange(started_, Batch(start_rows())));
}

std::set<ExecutionId> hand_out(Workspace& workspace, WaitingClaims& waiters, const std::set<ExecutionId>& ready) {
  std::vector<Execution*> candidates;
  for (const ExecutionId& id : ready) {
    if (Row* row = workspace.find(id)) candidates.push_back(&row->execution);
  }
  auto handed =
      hapax::hand_out(waiters, candidates, workspace.policies(), workspace.now(), [&](const Execution& started) {
        workspace.changed(*workspace.find(started.id));
        return std::vector<Event>();  // read when those of this transaction are written
      });
  if (handed.empty()) return handed;
  workspace.write();
  complete(workspace.connection(), waiters);
  return handed;
}

}  // namespace hapax::postgres
