#include "store/postgres/tables/run_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/page.h"
#include "store/postgres/tables/columns.h"
#include "store/postgres/tables/rows.h"

namespace hapax::postgres {

namespace {

const Statement kAppend{"append_events", insert_into("events", event_rows())};
// The events of a run after a given one, in order: those of the events table, and the two of each step that was
// completed within its turn.
std::string events_after(const std::string& run, const std::string& no, const std::string& steps) {
  const ColumnValues of_step{
      {"no", "d.done_event + n.no"},
      {"at", "d.created_at"},
      {"kind", fmt::format("(CASE n.no WHEN 0 THEN {} ELSE {} END)::int2", static_cast<int>(Event::Kind::task),
                           static_cast<int>(Event::Kind::closed))},
      {"name", "CASE n.no WHEN 0 THEN d.type ELSE '' END"},
      {"key", "NULL::bytea"},
      {"execution", "d.id"},
      {"until", "NULL::int8"},
      {"status", fmt::format("(CASE n.no WHEN 1 THEN {} END)::int2", static_cast<int>(Status::completed))},
      {"value", "CASE n.no WHEN 1 THEN d.done_result END"},
      {"error_type", "NULL::bytea"},
      {"error_message", "NULL::bytea"},
      {"error_stack", "NULL::bytea"},
      {"error_details", "NULL::bytea"}};
  return fmt::format(
      "(SELECT {0} FROM events x WHERE x.run = {1} AND x.no > {2}"
      " UNION ALL SELECT {3} FROM executions d, (VALUES (0), (1)) AS n (no)"
      " WHERE {4} AND d.parent = {1} AND d.done_event + n.no > {2} ORDER BY no)",
      names(event_columns(), "x"), run, no, select_list(event_columns(), of_step, "d"), steps);
}

// As many of these as weigh that much, and always the first.
std::string bounded(const std::string& events, const std::string& bytes) {
  std::string weight = "octet_length(v.name)";
  for (const char* column : {"key", "value", "error_type", "error_message", "error_stack", "error_details"}) {
    weight += fmt::format(" + coalesce(octet_length(v.{}), 0)", column);
  }
  return fmt::format(
      "(SELECT w.* FROM (SELECT v.*, sum({0}) OVER (ORDER BY v.no) AS upto, row_number() OVER (ORDER BY v.no) AS place"
      " FROM {1} v) w WHERE w.upto <= {2} OR w.place = 1)",
      weight, events, bytes);
}

const Statement kEvents{"read_events",
                        fmt::format("SELECT {} FROM {} e ORDER BY e.no LIMIT $3::int8", names(event_columns(), "e"),
                                    bounded(events_after("$1::uuid", "$2::int8", "true"), "$4::int8"))};
// A turn knows what was done within it: such steps are only read by a replay from the start.
const Statement kNews{
    "read_news",
    fmt::format("SELECT g.place, {} FROM unnest($1::uuid[], $2::int8[]) WITH ORDINALITY AS g (run, seen, place),"
                " LATERAL {} e ORDER BY g.place, e.no",
                names(event_columns(), "e"), bounded(events_after("g.run", "g.seen", "g.seen = 0"), "$3::int8"))};
const Statement kEraseEvents{"erase_events", "DELETE FROM events WHERE run = ANY($1::uuid[])"};
const Statement kEraseEventsOfSteps{
    "erase_events_of_steps",
    "UPDATE executions SET done_event = NULL WHERE parent = ANY($1::uuid[]) AND done_event IS NOT NULL"};

const Statement kLatest{
    "latest_run",
    "SELECT e.id FROM " +
        lookup_key("$4::int4", "$1::int4", "$2::bytea", "e",
                   "ARRAY(SELECT q.queue_no FROM queues q WHERE q.name_space = $3::bytea AND q.kind = 1)") +
        " WHERE e.id <> ALL($5::uuid[]) ORDER BY e.created_at DESC, e.id DESC LIMIT 1"};
const Statement kPutWait{
    "put_wait",
    "INSERT INTO waits (run, step, signal, until, awaits)"
    " VALUES ($1::uuid, $2::int4, $3::bytea, $4::int8, $5::uuid) ON CONFLICT (run, step) DO UPDATE SET"
    " signal = excluded.signal, until = excluded.until, awaits = excluded.awaits"};
const Statement kWaitsOf{"waits_of",
                         "SELECT run, step, signal, until, awaits FROM waits WHERE run = $1::uuid ORDER BY step"};
const Statement kWaitsOn{
    "waits_on", "SELECT run, step, signal, until, awaits FROM waits WHERE awaits = $1::uuid ORDER BY run, step"};
const Statement kEraseWait{"erase_wait", "DELETE FROM waits WHERE run = $1::uuid AND step = $2::int4"};
const Statement kEraseWaits{"erase_waits", "DELETE FROM waits WHERE run = ANY($1::uuid[])"};

const Statement kPutSignal{"put_signal",
                           "INSERT INTO signals (run, no, at, name, value)"
                           " VALUES ($1::uuid, $2::int8, $3::int8, $4::bytea, $5::bytea)"};
const Statement kTakeSignal{"take_signal",
                            "DELETE FROM signals WHERE ctid = (SELECT x.ctid FROM signals x WHERE x.run = $1::uuid"
                            " AND x.name = $2::bytea ORDER BY x.no LIMIT 1) RETURNING no, at, value"};
const Statement kFreeSteps{"free_steps",
                           "UPDATE closed SET has_parent = false WHERE has_parent AND id = ANY(ARRAY(SELECT x.id"
                           " FROM executions x WHERE x.parent = ANY($1::uuid[])))"};
const Statement kFreeDoneSteps{
    "free_done_steps",
    fmt::format("INSERT INTO closed ({}) SELECT {} FROM executions e WHERE e.parent = ANY($1::uuid[])"
                " AND e.done_secret IS NOT NULL ON CONFLICT (id) DO NOTHING",
                names(state_rows().columns), done_state("e", "false"))};
const Statement kEraseSignals{"erase_signals", "DELETE FROM signals WHERE run = ANY($1::uuid[])"};

Parameters runs_parameter(const std::vector<ExecutionId>& runs) {
  Array array(Type::uuid);
  for (const ExecutionId& run : runs) array.raw(run);
  Parameters parameters;
  parameters.array(std::move(array));
  return parameters;
}

Event read_event(Cells& cells) {
  Event event;
  fields(ReadColumns(cells, event.damaged), event);
  return event;
}

std::vector<Wait> read_waits(const Rows& rows) {
  std::vector<Wait> waits;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    Wait& wait = waits.emplace_back();
    wait.run = cells.raw<ExecutionId>();
    wait.step = static_cast<std::int32_t>(cells.integer());
    wait.signal = cells.text();
    wait.until = cells.time_if();
    wait.on = cells.raw_if<ExecutionId>();
  }
  return waits;
}

}  // namespace

RunChanges::RunChanges() : appended_(event_rows()) {}

void RunChanges::append(const ExecutionId& run, const std::vector<Event>& events) {
  for (const Event& event : events) write_event(appended_, run, event);
}

void RunChanges::erase_waits(const ExecutionId& run) { waitless_.push_back(run); }

void RunChanges::write(Connection& connection) {
  send_silently(connection, kAppend, std::exchange(appended_, Batch(event_rows())));
  if (!waitless_.empty()) connection.send_silently(kEraseWaits, runs_parameter(std::exchange(waitless_, {})));
}

void erase_events(Connection& connection, const ExecutionId& run) {
  for (const Statement* statement : {&kEraseEvents, &kEraseEventsOfSteps}) {
    connection.send_silently(*statement, runs_parameter({run}));
  }
}

void send_read_events(Connection& connection, const ExecutionId& run, std::int64_t after, std::int32_t limit,
                      std::int64_t bytes) {
  connection.send(kEvents, Parameters().raw(run).int8(after).int8(limit).int8(bytes));
}

std::vector<Event> receive_events(Connection& connection) {
  const Rows rows = connection.receive();
  std::vector<Event> events;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    events.push_back(read_event(cells));
  }
  return events;
}

void send_read_news(Connection& connection, const std::vector<const Execution*>& runs) {
  Array ids(Type::uuid), seen(Type::int8);
  for (const Execution* run : runs) {
    ids.raw(run->id);
    seen.integer(run->run.seen);
  }
  Parameters parameters;
  parameters.array(std::move(ids))
      .array(std::move(seen))
      .int8(kPageBytes / std::max<std::int64_t>(std::ssize(runs), 1));
  connection.send(kNews, parameters);
}

std::vector<std::vector<Event>> receive_news(Connection& connection, std::size_t runs) {
  const Rows rows = connection.receive();
  std::vector<std::vector<Event>> news(runs);
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto place = static_cast<std::size_t>(cells.integer());
    news.at(place - 1).push_back(read_event(cells));
  }
  return news;
}

std::optional<ExecutionId> latest_run(Connection& connection, std::int32_t first_shelf, const std::string& name_space,
                                      const std::string& workflow_id, const std::vector<ExecutionId>& erased) {
  Array others(Type::uuid);
  for (const ExecutionId& id : erased) others.raw(id);
  Parameters parameters;
  parameters.int4(key_number(workflow_id)).bytes(workflow_id).bytes(name_space).int4(first_shelf);
  parameters.array(std::move(others));
  const Rows rows = connection.run(kLatest, parameters);
  if (rows.empty()) return std::nullopt;
  return Cells(rows, 0).raw<ExecutionId>();
}

void put_wait(Connection& connection, const Wait& wait) {
  connection.send_silently(
      kPutWait, Parameters().raw(wait.run).int4(wait.step).bytes(wait.signal).time_if(wait.until).raw_if(wait.on));
}

std::vector<Wait> waits_of(Connection& connection, const ExecutionId& run) {
  return read_waits(connection.run(kWaitsOf, Parameters().raw(run)));
}

std::vector<Wait> waits_on(Connection& connection, const ExecutionId& execution) {
  return read_waits(connection.run(kWaitsOn, Parameters().raw(execution)));
}

void erase_wait(Connection& connection, const ExecutionId& run, std::int32_t step) {
  connection.send_silently(kEraseWait, Parameters().raw(run).int4(step));
}

void put_signal(Connection& connection, const ExecutionId& run, const Event& signal) {
  connection.send_silently(kPutSignal, Parameters()
                                           .raw(run)
                                           .int8(signal.no)
                                           .time(signal.at)
                                           .bytes(signal.name)
                                           .bytes_if(seal_json(signal.value, signal.damaged)));
}

std::optional<Event> take_signal(Connection& connection, const ExecutionId& run, const std::string& name) {
  const Rows rows = connection.run(kTakeSignal, Parameters().raw(run).bytes(name));
  if (rows.empty()) return std::nullopt;
  Cells cells(rows, 0);
  Event signal;
  signal.kind = Event::Kind::signal;
  signal.name = name;
  signal.no = cells.integer();
  signal.at = cells.time();
  signal.value = unseal_json(cells.bytes_if(), signal.damaged);
  return signal;
}

void erase_runs(Connection& connection, const std::vector<ExecutionId>& runs) {
  for (const Statement* statement :
       {&kEraseEvents, &kEraseEventsOfSteps, &kEraseWaits, &kEraseSignals, &kFreeDoneSteps, &kFreeSteps}) {
    connection.send_silently(*statement, runs_parameter(runs));
  }
}

}  // namespace hapax::postgres
