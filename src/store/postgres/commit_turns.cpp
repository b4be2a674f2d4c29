// Turns of workflows. Most of those that nobody else has a part in (steps that were begun and completed within them, and an end, or
// none yet) are committed by one statement. The others are decided by the rules of workflows, under a lock.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "store/postgres/run_rows.h"
#include "store/postgres/start.h"
#include "store/postgres/verbs.h"
#include "store/workflow/rules.h"

namespace hapax::postgres {

namespace {

using ColumnValues = std::map<std::string_view, std::string>;

// What is selected for each column: the value that is given for it, otherwise the column of the table called `alias`.
std::string select_list(std::span<const Column> columns, const ColumnValues& values, const std::string& alias) {
  std::string list;
  for (const Column& column : columns) {
    const auto found = values.find(column.name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ",
                        found == values.end() ? fmt::format("{}.{}", alias, column.name) : found->second);
  }
  return list;
}

std::string closed_step_values() {
  ColumnValues values{{"has_parent", "true"},
                      {"status", fmt::format("{}", static_cast<int>(Status::completed))},
                      {"run_at", "t.now"},
                      {"attempt", "1"},
                      {"attempt_limit", "g.max_attempts"},
                      {"started_at", "t.now"},
                      {"finished_at", "t.now"},
                      {"awaited", "false"}};
  for (const char* absent : {"due_at", "deadline_at", "cancel_requested_at", "cancel_by", "lease_expires_at",
                             "attempt_ends_by", "error_type", "error_message", "failed_attempts", "run_events",
                             "run_seen", "run_steps", "run_stuck", "wake_at", "continued_as"}) {
    values.emplace(absent, "NULL");
  }
  return select_list(state_rows().columns, values, "g");
}

std::string closed_run_values() {
  const ColumnValues values{{"status", fmt::format("{}", static_cast<int>(Status::completed))},
                            {"due_at", "NULL"},
                            {"finished_at", "t.now"},
                            {"cancel_by", "NULL"},
                            {"lease_expires_at", "NULL"},
                            {"attempt_ends_by", "NULL"},
                            {"error_type", "NULL"},
                            {"error_message", "NULL"},
                            {"result", "d.reported"},
                            {"run_events", "d.events_now"},
                            {"run_seen", "d.seen_now"},
                            {"run_steps", "d.steps_now"},
                            {"run_stuck", "0"}};
  return select_list(state_rows().columns, values, "d");
}

std::string turn_sql() {
  // What is added to columns keeps the planner from looking for them in an index: the row is known by its place.
  const std::string is_current = fmt::format(
      "o.ctid = s.place AND o.status + 0 = {} AND o.attempt = g.attempt AND o.lease_secret = g.secret AND o.kind + 0 = "
      "{}"
      " AND coalesce(o.run_events, 0) = g.seen AND coalesce(g.steps, o.run_steps, 0) = coalesce(o.run_steps, 0)"
      " AND o.concurrency_key IS NULL"
      " AND g.name_space = (SELECT q.name_space FROM queues q WHERE q.queue_no = o.queue_no)",
      static_cast<int>(Status::running), static_cast<int>(Kind::workflow));
  return fmt::format(
      R"sql(
WITH t AS MATERIALIZED (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now),
given AS MATERIALIZED (SELECT * FROM {0}),
going AS (
  UPDATE open o SET run_events = g.events_now, run_seen = g.seen_now, run_steps = coalesce(g.steps_now, o.run_steps), run_stuck = 0,
    error_type = NULL, error_message = NULL
  FROM given g, {1} WHERE {2} AND NOT g.is_over
  RETURNING o.id, o.queue_no),
over AS (
  DELETE FROM open o USING given g, {1}
  WHERE {2} AND g.is_over AND NOT o.has_parent AND NOT o.awaited AND o.queue_no + 0 = ANY($3::int4[])
  RETURNING o.*, g.result AS reported, g.events_now, g.seen_now, coalesce(g.steps_now, o.run_steps) AS steps_now),
kept AS (INSERT INTO closed ({3}) SELECT {4} FROM over d, t RETURNING *),
done AS MATERIALIZED (SELECT id, queue_no FROM going UNION ALL SELECT id, queue_no FROM over),
steps AS MATERIALIZED (
  SELECT g.*, (SELECT r.idempotency_key FROM executions r WHERE r.id = g.parent) AS workflow_id
  FROM {5} WHERE g.parent IN (SELECT id FROM done)),
facts AS (INSERT INTO executions ({6}) SELECT {7} FROM steps g, t),
states AS (INSERT INTO closed ({3}) SELECT {8} FROM steps g, t),
told AS (INSERT INTO events ({9}) SELECT {10} FROM {11}, t WHERE g.run IN (SELECT id FROM done)),
waitless AS (DELETE FROM waits w WHERE w.run = ANY(ARRAY(SELECT id FROM over)))
SELECT t.now, d.id, d.queue_no, {12} FROM t LEFT JOIN done d ON true LEFT JOIN kept s ON s.id = d.id LEFT JOIN {13} ON true)sql",
      unnest(turn_rows(), 2, "g"), lookup_place("open", "id", "g.id", "s"), is_current, names(state_rows().columns),
      closed_run_values(), unnest(done_step_rows(), 4, "g"), names(kFactColumns),
      select_list(kFactColumns, {{"created_at", "t.now"}, {"parent_workflow_id", "g.workflow_id"}}, "g"),
      closed_step_values(), names(event_rows().columns), select_list(event_rows().columns, {{"at", "t.now"}}, "g"),
      unnest(event_rows(), 5, "g"), row_columns(true), lookup("executions", "id", "s.id", "e"));
}

const Statement kTurns{"turns", turn_sql()};

bool is_completed_within(const Turn::Start& start) {
  return start.begun && start.begun->completed && !start.submission.execution.identity &&
         !start.submission.execution.concurrency_key;
}

// A turn of which the statement can tell, by the row of its run alone, whether it counts and what it changes.
bool may_go_the_short_way(const Turn& turn, const QueuePolicies& policies) {
  const bool completes = std::holds_alternative<Turn::Completed>(turn.end);
  if (turn.step || turn.name_space.empty()) return false;
  if (!completes && !std::holds_alternative<Turn::Unfinished>(turn.end)) return false;
  if (!completes && turn.starts.empty()) return false;
  if (!std::all_of(turn.starts.begin(), turn.starts.end(), is_completed_within)) return false;
  const auto tasks = std::count_if(turn.events.begin(), turn.events.end(),
                                   [](const Event& event) { return event.kind == Event::Kind::task; });
  const bool is_plain = std::all_of(turn.events.begin(), turn.events.end(), [&](const Event& event) {
    const std::int32_t place = static_cast<std::int32_t>(&event - turn.events.data());
    const bool is_asked =
        event.kind == Event::Kind::task || event.kind == Event::Kind::side_effect || event.kind == Event::Kind::version;
    return is_asked && event.step == turn.events.front().step + place;
  });
  if (!is_plain || tasks != std::ssize(turn.starts)) return false;
  return turn.seen + std::ssize(turn.events) + std::ssize(turn.starts) <= policies.history_limit;
}

QueueName queue_of(const Turn& turn, const Turn::Start& start) {
  return {turn.name_space, start.submission.execution.queue, Kind::task};
}

// The rows of turns that go the short way.
class TurnBatch {
 public:
  explicit TurnBatch(QueueBook& queues) : queues_(queues) {}

  void add(const Turn& turn) {
    run_ = turn.token.execution;
    no_ = seen_ = turn.seen;
    auto start = turn.starts.begin();
    for (const Event& event : turn.events) {
      if (event.kind == Event::Kind::task) {
        add_step(turn, event, *start++);
      } else {
        add_event(event);
      }
    }
    const auto* completed = std::get_if<Turn::Completed>(&turn.end);
    if (completed) {
      Event end;
      end.kind = Event::Kind::completed;
      end.value = completed->result;
      add_event(end);
    } else {
      seen_ = no_;
    }
    add_turn(turn, completed);
  }

  Parameters parameters(std::optional<std::int64_t> now, Array retained_queues) {
    Parameters parameters;
    parameters.int8_if(now).batch(std::move(turns_)).array(std::move(retained_queues));
    parameters.batch(std::move(steps_)).batch(std::move(events_));
    return parameters;
  }

 private:
  void add_step(const Turn& turn, const Event& command, const Turn::Start& start) {
    Row row;
    row.execution = start.submission.execution;
    row.execution.id = step_id(run_, row.execution.type, start.step);
    row.execution.parent = run_;
    row.execution.step = start.step;
    row.queue_no = queues_.find(queue_of(turn, start)).value();
    write_facts(steps_, row);
    steps_.next().raw(start.begun->secret);
    steps_.next().bytes(start.begun->worker);
    steps_.next().bytes_if(start.begun->completed->result);

    Event asked = command;
    asked.execution = row.execution.id;
    add_event(asked);
    Event closed;
    closed.kind = Event::Kind::closed;
    closed.step = start.step;
    closed.execution = row.execution.id;
    closed.status = Status::completed;
    closed.value = start.begun->completed->result;
    add_event(closed);
    seen_ = no_;
  }

  void add_event(Event event) {
    event.no = ++no_;
    write_event(events_, run_, event);
  }

  void add_turn(const Turn& turn, const Turn::Completed* completed) {
    turns_.begin_row();
    turns_.next().raw(run_);
    turns_.next().integer(turn.token.attempt);
    turns_.next().raw(turn.token.secret);
    turns_.next().bytes(turn.name_space);
    turns_.next().integer(turn.seen);
    turn.events.empty() ? turns_.next().null() : turns_.next().integer(turn.events.front().step - 1);
    turns_.next().boolean(completed != nullptr);
    turns_.next().bytes_if(completed ? completed->result : std::nullopt);
    turns_.next().integer(no_);
    turns_.next().integer(seen_);
    turn.events.empty() ? turns_.next().null() : turns_.next().integer(turn.events.back().step);
  }

  QueueBook& queues_;
  Batch turns_{turn_rows()}, steps_{done_step_rows()}, events_{event_rows()};
  ExecutionId run_;
  std::int64_t no_ = 0, seen_ = 0;
};

// Gives back which of the turns are still to be decided.
std::vector<std::size_t> commit_plain(Runner& runner, std::span<const Turn> turns, std::vector<TurnOutcome>& outcomes) {
  std::map<ExecutionId, std::size_t> tried;  // in the order in which everybody locks runs
  std::vector<std::size_t> rest;
  std::vector<QueueName> queues;
  const auto policies = runner.policies();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const bool is_plain =
        may_go_the_short_way(turns[i], *policies) && tried.emplace(turns[i].token.execution, i).second;
    if (!is_plain) rest.push_back(i);
    for (const Turn::Start& start : turns[i].starts) {
      if (is_plain) queues.push_back(queue_of(turns[i], start));
    }
  }
  if (tried.empty()) return rest;
  runner.add_queues(queues);
  TurnBatch batch(runner.queues());
  for (const auto& [run, i] : tried) batch.add(turns[i]);
  const Parameters parameters = batch.parameters(runner.now_parameter(), retained_queues(runner, Kind::workflow));
  bool is_refused = false;  // a step of such an id is there
  const Rows rows = runner.attempt([&](Connection& connection) {
    if (std::exchange(is_refused, true)) return Rows();
    connection.begin_implicitly();
    connection.send(kTurns, parameters);
    return connection.receive_and_commit();
  });
  for (int i = 0; rows.result() && i < rows.size(); ++i) {
    Cells cells(rows, i);
    runner.note(cells.time());
    const auto id = cells.raw_if<ExecutionId>();
    if (!id) break;
    const auto found = tried.find(*id);
    TurnOutcome& outcome = outcomes[found->second];
    const QueueName name = runner.queues().name_of(static_cast<std::int32_t>(cells.integer()));
    outcome.accepted = true;
    outcome.status = Status::running;
    if (std::holds_alternative<Turn::Completed>(turns[found->second].end)) {
      outcome.status = Status::completed;
      outcome.effects.closed.push_back({*id, name.name_space, name.queue, Kind::workflow});
      Row row;
      read_row(cells, row);
      row.execution.name_space = name.name_space;
      row.execution.queue = name.queue;
      outcome.run = std::move(row.execution);
    }
    tried.erase(found);
  }
  for (const auto& [run, i] : tried) rest.push_back(i);
  std::sort(rest.begin(), rest.end());
  return rest;
}

std::vector<TurnOutcome> commit_locked(Runner& runner, std::span<const Turn> turns, Waiters& waiters) {
  std::vector<ExecutionId> runs, ending, steps;
  for (const Turn& turn : turns) {
    runs.push_back(turn.token.execution);
    if (turn.step) ending.push_back(turn.step->token.execution);
    for (const Turn::Start& start : turn.starts) {
      steps.push_back(step_id(turn.token.execution, start.submission.execution.type, start.step));
    }
  }
  return runner.transact([&](Workspace& workspace) {
    workspace.lock_runs(runs, ending, steps);
    PostgresRows rows(workspace);
    std::vector<TurnOutcome> outcomes;
    for (const Turn& turn : turns) outcomes.push_back(hapax::commit_turn(rows, turn));
    hand_out(workspace, waiters, turns, outcomes);
    return outcomes;
  });
}

}  // namespace

std::vector<TurnOutcome> commit_turns(Runner& runner, std::span<const Turn> turns, Waiters& waiters) {
  std::vector<TurnOutcome> outcomes(turns.size());
  const std::vector<std::size_t> rest = commit_plain(runner, turns, outcomes);
  if (rest.empty()) return outcomes;
  if (rest.size() == turns.size()) return commit_locked(runner, turns, waiters);
  std::vector<Turn> others;
  for (const std::size_t i : rest) others.push_back(turns[i]);
  try {
    std::vector<TurnOutcome> decided = commit_locked(runner, others, waiters);
    for (std::size_t i = 0; i < rest.size(); ++i) outcomes[rest[i]] = std::move(decided[i]);
  } catch (const Failure& failure) {
    // Some are committed: only sending all of them again tells how it ended.
    if (failure.code() != Failure::Code::unavailable) throw;
    throw Failure(Failure::Code::outcome_unknown, failure.what());
  }
  return outcomes;
}

}  // namespace hapax::postgres
