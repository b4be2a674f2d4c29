#include "store/postgres/start.h"

#include <fmt/format.h>

#include "store/postgres/run_tables.h"

namespace hapax::postgres {

namespace {

// What an attempt begins with. It is far less than all of a row, and a claim writes nothing else.
constexpr Column kStartColumns[] = {
    {"id", Type::uuid},              {"due_at", Type::int8},        {"attempt", Type::int4},
    {"started_at", Type::int8},      {"lease_secret", Type::bytea}, {"lease_expires_at", Type::int8},
    {"attempt_ends_by", Type::int8}, {"worker", Type::bytea},
};

BatchStatement start_statement() {
  std::string assignments = fmt::format("status = {}", static_cast<int>(Status::running));
  for (const Column& column : std::span(kStartColumns).subspan(1)) {
    assignments += fmt::format(", {0} = g.{0}", column.name);
  }
  return over_batch("start", kStartColumns, 1, [&](const std::string& batch) {
    return fmt::format("UPDATE open o SET {} FROM {}, {} WHERE o.ctid = s.place", assignments, batch,
                       lookup_place("open", "id", "g.id", "s"));
  });
}

const BatchStatement kStart = start_statement();

const Statement kReadInputs{"read_inputs", "SELECT id, input FROM executions WHERE id = ANY($1::uuid[])"};

// Of workflows: the events that they are handed out with, and the input where it was not locked with the rest.
void complete(Connection& connection, Waiters& waiters) {
  std::vector<const Execution*> runs;
  std::map<ExecutionId, Execution*> without_input;
  Array ids(Type::uuid);
  for (ClaimOutcome& outcome : waiters.outcomes) {
    for (Execution& execution : outcome.executions) {
      if (execution.kind == Kind::workflow) runs.push_back(&execution);
      if (!execution.input.empty()) continue;
      without_input.emplace(execution.id, &execution);
      ids.raw(execution.id);
    }
  }
  if (!runs.empty()) send_read_news(connection, runs);
  if (!without_input.empty()) {
    Parameters parameters;
    connection.send(kReadInputs, parameters.array(std::move(ids)));
  }
  if (!runs.empty()) {
    auto all = receive_news(connection, runs.size());
    auto news = all.begin();
    for (ClaimOutcome& outcome : waiters.outcomes) {
      for (std::vector<Event>& events : outcome.events) events = std::move(*news++);
    }
  }
  if (!without_input.empty()) {
    const Rows rows = connection.receive();
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      const auto id = cells.raw<ExecutionId>();
      without_input.at(id)->input = cells.text();
    }
  }
}

}  // namespace

Starts::Starts() : columns_(kStartColumns) {}

void Starts::add(const Execution& started) {
  columns_.begin_row();
  columns_.next().raw(started.id);
  columns_.next().time_if(started.due_at());
  columns_.next().integer(started.attempt);
  columns_.next().time_if(started.started_at);
  columns_.next().raw_if(started.lease_secret);
  columns_.next().time_if(started.lease_expires_at);
  columns_.next().time_if(started.attempt_ends_by);
  columns_.next().bytes(started.worker);
}

void Starts::send(Connection& connection) {
  columns_.send_silently(connection, kStart);
  columns_ = Columns(kStartColumns);
}

std::set<ExecutionId> hand_out(Workspace& workspace, Waiters& waiters, const std::set<ExecutionId>& ready) {
  std::vector<Execution*> candidates;
  for (const ExecutionId& id : ready) {
    if (Row* row = workspace.find(id)) candidates.push_back(&row->execution);
  }
  auto handed = hapax::hand_out(waiters, candidates, workspace.policies(), workspace.now(), [&](const Execution& started) {
    workspace.changed(*workspace.find(started.id));
    return std::vector<Event>();  // read when those of this transaction are written
  });
  if (handed.empty()) return handed;
  workspace.write();
  complete(workspace.connection(), waiters);
  return handed;
}

}  // namespace hapax::postgres
