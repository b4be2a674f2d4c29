#include "store/postgres/fast/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "store/postgres/tables/run_tables.h"
#include "store/postgres/tables/sealed.h"

namespace hapax::postgres::fast {

namespace {

std::string closed_run_values() {
  const ColumnValues values{{"status", fmt::format("{}", static_cast<int>(Status::completed))},
                            {"due_at", "NULL"},
                            {"finished_at", "t.now"},
                            {"cancel_by", "NULL"},
                            {"lease_expires_at", "NULL"},
                            {"attempt_ends_by", "NULL"},
                            {"error_type", "NULL"},
                            {"error_message", "NULL"},
                            {"error_stack", "NULL"},
                            {"error_details", "NULL"},
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
      "o.ctid = s.place AND o.status + 0 = {} AND o.attempt = g.attempt AND o.lease_secret = g.secret"
      " AND o.queue_no + 0 = g.queue_no AND coalesce(o.run_events, 0) = g.seen"
      " AND coalesce(g.steps, o.run_steps, 0) = coalesce(o.run_steps, 0) AND o.cancel_requested_at IS NULL",
      static_cast<int>(Status::running));
  return fmt::format(
      R"sql(
WITH t AS MATERIALIZED (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now),
given AS MATERIALIZED (SELECT * FROM {0}),
going AS (
  UPDATE open o SET run_events = g.events_now, run_seen = g.seen_now, run_steps = coalesce(g.steps_now, o.run_steps), run_stuck = 0,
    error_type = NULL, error_message = NULL, error_stack = NULL, error_details = NULL
  FROM given g, {1} WHERE {2} AND NOT g.is_over
  RETURNING o.id),
over AS (
  DELETE FROM open o USING given g, {1} WHERE {2} AND g.is_over AND NOT o.has_parent AND NOT o.awaited
  RETURNING o.*, g.result AS reported, g.events_now, g.seen_now, coalesce(g.steps_now, o.run_steps) AS steps_now),
kept AS (INSERT INTO closed ({3}) SELECT {4} FROM over d, t),
done AS MATERIALIZED (SELECT id, NULL::int4 AS steps FROM going UNION ALL SELECT id, steps_now FROM over),
facts AS (
  INSERT INTO executions ({5}, kind, created_at)
  SELECT {6}, {7}, t.now FROM {8}, t WHERE (g.parent IN (SELECT id FROM done)) IS TRUE),
told AS (INSERT INTO events ({9}) SELECT {10} FROM {11}, t WHERE (g.run IN (SELECT id FROM done)) IS TRUE),
waitless AS (DELETE FROM waits w WHERE w.run = ANY(ARRAY(SELECT id FROM over)))
SELECT t.now, d.id, d.steps FROM t LEFT JOIN done d ON true)sql",
      unnest(turn_rows(), 2, "g"), lookup_place("open", "id", "g.id", "s"), is_current, names(state_rows().columns),
      closed_run_values(), names(done_step_rows().columns), names(done_step_rows().columns, "g"),
      static_cast<int>(Kind::task), unnest(done_step_rows(), 3, "g"), names(event_rows().columns),
      select_list(event_rows().columns, {{"at", "t.now"}}, "g"), unnest(event_rows(), 4, "g"));
}

const Statement kTurns{"turns", turn_sql()};

// Nothing is known of it but what a row of done_step_rows() has.
bool is_completed_within(const Turn::Start& start) {
  const Execution& step = start.submission.execution;
  return start.begun && start.begun->completed && !step.identity && !step.idempotency_key && !step.concurrency_key &&
         !step.timeout && !step.headers && !step.tags;
}

// Whether its event says no more than the step itself.
bool says_no_more(const Event& asked, const Turn::Start& start) {
  return asked.step == start.step && asked.name == start.submission.execution.type && !asked.key && !asked.until &&
         !asked.status && !asked.value && !asked.error;
}

// Whether the caller knows what run it is a turn of: a workflow of the namespace that it speaks for.
bool is_run_of(const Turn& turn) {
  return turn.claimed && turn.claimed->id == turn.token.execution && turn.claimed->kind == Kind::workflow &&
         !turn.claimed->concurrency_key && !turn.claimed->headers && turn.claimed->name_space == turn.name_space;
}

// A turn of which the statement can tell, by the row of its run alone, whether it counts and what it changes.
bool is_plain(const Turn& turn, const QueuePolicies& policies) {
  const bool completes = std::holds_alternative<Turn::Completed>(turn.end);
  if (turn.step || !is_run_of(turn)) return false;
  if (completes && policies.retention(*turn.claimed) == Duration::zero()) return false;
  if (!completes && !std::holds_alternative<Turn::Unfinished>(turn.end)) return false;
  if (!completes && turn.starts.empty()) return false;
  if (!std::all_of(turn.starts.begin(), turn.starts.end(), is_completed_within)) return false;
  auto start = turn.starts.begin();
  for (const Event& event : turn.events) {
    if (event.step != turn.events.front().step + static_cast<std::int32_t>(&event - turn.events.data())) return false;
    if (event.kind == Event::Kind::task) {
      if (start == turn.starts.end() || !says_no_more(event, *start++)) return false;
    } else if (event.kind != Event::Kind::side_effect && event.kind != Event::Kind::version) {
      return false;
    }
  }
  if (start != turn.starts.end()) return false;
  return turn.seen + std::ssize(turn.events) + std::ssize(turn.starts) <= policies.history_limit;
}

QueueName queue_of(const Turn& turn) { return {turn.name_space, turn.claimed->queue, Kind::workflow}; }

QueueName queue_of(const Turn& turn, const Turn::Start& start) {
  return {turn.name_space, start.submission.execution.queue, Kind::task};
}

// The rows of turns that are committed here.
class TurnBatch {
 public:
  explicit TurnBatch(QueueNumbers& queues) : queues_(queues) {}

  // How many events its run has then, and how many of them its turns know.
  struct Known {
    std::int64_t events = 0, seen = 0;
  };

  Known add(const Turn& turn) {
    run_ = turn.token.execution;
    no_ = seen_ = turn.seen;
    auto start = turn.starts.begin();
    for (const Event& event : turn.events) {
      if (event.kind == Event::Kind::task) {
        add_step(turn, *start++);
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
    return {no_, seen_};
  }

  Parameters parameters(std::optional<std::int64_t> now) {
    Parameters parameters;
    parameters.int8_if(now).batch(std::move(turns_)).batch(std::move(steps_)).batch(std::move(events_));
    return parameters;
  }

 private:
  // Its two events follow from its row.
  void add_step(const Turn& turn, const Turn::Start& start) {
    const Execution& step = start.submission.execution;
    steps_.begin_row();
    steps_.next().raw(step_id(run_, step.type, start.step));
    steps_.next().integer(queues_.find(queue_of(turn, start)).value());
    steps_.next().integer(step.priority);
    steps_.next().integer(step.max_attempts);
    steps_.next().integer(step.retry.initial.count());
    steps_.next().real(step.retry.factor);
    steps_.next().integer(step.retry.max.count());
    steps_.next().raw(run_);
    steps_.next().bytes_if(turn.claimed->idempotency_key);
    steps_.next().integer(start.step);
    steps_.next().bytes(step.type);
    steps_.next().raw(step.input_hash);
    steps_.next().bytes(seal_input(step, turn.claimed->idempotency_key.value_or("")));
    steps_.next().raw(start.begun->secret);
    steps_.next().bytes(start.begun->worker);
    steps_.next().bytes_if(seal_json(start.begun->completed->result));
    steps_.next().integer(no_ + 1);
    seen_ = no_ += 2;
  }

  void add_event(Event event) {
    event.no = ++no_;
    write_event(events_, run_, event);
  }

  void add_turn(const Turn& turn, const Turn::Completed* completed) {
    turns_.begin_row();
    turns_.next().raw(run_);
    turns_.next().integer(queues_.find(queue_of(turn)).value());
    turns_.next().integer(turn.token.attempt);
    turns_.next().raw(turn.token.secret);
    turns_.next().integer(turn.seen);
    turn.events.empty() ? turns_.next().null() : turns_.next().integer(turn.events.front().step - 1);
    turns_.next().boolean(completed != nullptr);
    turns_.next().bytes_if(completed ? seal_json(completed->result) : std::nullopt);
    turns_.next().integer(no_);
    turns_.next().integer(seen_);
    turn.events.empty() ? turns_.next().null() : turns_.next().integer(turn.events.back().step);
  }

  QueueNumbers& queues_;
  Batch turns_{turn_rows()}, steps_{done_step_rows()}, events_{event_rows()};
  ExecutionId run_;
  std::int64_t no_ = 0, seen_ = 0;
};

// closed_run_values(), of the run as it was claimed.
Execution completed_run(const Turn& turn, Time now, const TurnBatch::Known& known, std::optional<std::int64_t> steps) {
  Execution run = *turn.claimed;
  run.status = Status::completed;
  run.finished_at = now;
  run.cancel_by.reset();
  run.lease_expires_at.reset();
  run.attempt_ends_by.reset();
  run.error.reset();
  run.result = std::get<Turn::Completed>(turn.end).result;
  run.run.events = known.events;
  run.run.seen = known.seen;
  run.run.steps = static_cast<std::int32_t>(steps.value_or(0));
  run.run.stuck = 0;
  return run;
}

}  // namespace

std::vector<std::size_t> commit_turns(Runner& runner, std::span<const Turn> turns, std::vector<TurnOutcome>& outcomes) {
  struct Tried {
    std::size_t turn;
    TurnBatch::Known known = {};
  };
  std::map<ExecutionId, Tried> tried;   // in the order in which all transactions lock runs
  std::unordered_set<ExecutionId> met;  // a second turn of a run must not overtake the first
  std::vector<std::size_t> rest;
  std::vector<QueueName> queues;
  const auto policies = runner.policies();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const ExecutionId& run = turns[i].token.execution;
    const bool is_first = met.insert(run).second;
    const bool has_steps = !turns[i].starts.empty();
    if (!is_first || (has_steps && !runner.fast().done_steps) || !is_plain(turns[i], *policies)) {
      rest.push_back(i);
      continue;
    }
    tried.emplace(run, Tried{i});
    queues.push_back(queue_of(turns[i]));
    for (const Turn::Start& start : turns[i].starts) queues.push_back(queue_of(turns[i], start));
  }
  if (tried.empty()) return rest;
  runner.add_queues(queues);
  TurnBatch batch(runner.queues());
  for (auto& [run, each] : tried) each.known = batch.add(turns[each.turn]);
  const Parameters parameters = batch.parameters(runner.now_parameter());
  bool is_refused = false;  // a step of such an id is there
  const Rows rows = runner.attempt([&](Connection& connection) {
    if (std::exchange(is_refused, true)) return Rows();
    connection.begin_implicitly();
    connection.send(kTurns, parameters);
    return connection.receive_and_commit();
  });
  for (int i = 0; rows.result() && i < rows.size(); ++i) {
    Cells cells(rows, i);
    const Time now = cells.time();
    runner.note(now);
    const auto id = cells.raw_if<ExecutionId>();
    if (!id) break;
    const auto found = tried.find(*id);
    const auto& [place, known] = found->second;
    const Turn& turn = turns[place];
    TurnOutcome& outcome = outcomes[place];
    outcome.accepted = true;
    outcome.status = Status::running;
    if (std::holds_alternative<Turn::Completed>(turn.end)) {
      outcome.status = Status::completed;
      outcome.effects.closed.push_back({*id, turn.name_space, turn.claimed->queue, Kind::workflow, turn.claimed->type});
      outcome.run = completed_run(turn, now, known, cells.integer_if());
    }
    tried.erase(found);
  }
  for (const auto& [run, each] : tried) rest.push_back(each.turn);
  std::sort(rest.begin(), rest.end());
  return rest;
}

}  // namespace hapax::postgres::fast
