#include "store/sqlite/run_tables.h"

#include "core/checksum.h"
#include "store/packed_fields.h"
#include "store/sqlite/columns.h"

namespace hapax::sqlite {

RunTables::RunTables(Connection& db)
    : load_(db, "SELECT events, seen, steps, stuck, wake_at, continued_as, committed FROM hapax_runs WHERE seq = ?"),
      insert_(db,
              "INSERT INTO hapax_runs (events, seen, steps, stuck, wake_at, continued_as, committed, seq)"
              " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
      save_(db,
            "UPDATE hapax_runs SET events = ?, seen = ?, steps = ?, stuck = ?, wake_at = ?, continued_as = ?, "
            "committed = ?"
            " WHERE seq = ?"),
      erase_(db, "DELETE FROM hapax_runs WHERE seq = ?"),
      latest_(db,
              "SELECT e.id FROM hapax_executions e INDEXED BY hapax_keys JOIN hapax_queues q USING (queue_no)"
              " WHERE e.key_hash = ? AND e.idempotency_key = ? AND e.kind = 1 AND q.name_space = ?"
              " ORDER BY e.created_at DESC, e.id DESC LIMIT 1"),
      steps_(db, "SELECT id FROM hapax_executions INDEXED BY hapax_steps WHERE parent = ? ORDER BY id"),
      append_(db, "INSERT INTO hapax_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      events_(db,
              "SELECT no, at, kind, step, name, key, execution, until, status, value, error_type, error_message,"
              " error_stack, error_details, sum"
              " FROM hapax_events WHERE seq = ? AND no > ? ORDER BY no LIMIT ?"),
      erase_events_(db, "DELETE FROM hapax_events WHERE seq = ?"),
      put_wait_(db, "INSERT OR REPLACE INTO hapax_waits (seq, step, signal, until, awaits) VALUES (?, ?, ?, ?, ?)"),
      waits_of_(
          db,
          "SELECT e.id, w.step, w.signal, w.until, w.awaits FROM hapax_waits w JOIN hapax_executions e USING (seq)"
          " WHERE w.seq = ? ORDER BY w.step"),
      waits_on_(db,
                "SELECT e.id, w.step, w.signal, w.until, w.awaits FROM hapax_waits w INDEXED BY hapax_awaited"
                " JOIN hapax_executions e USING (seq) WHERE w.awaits = ? ORDER BY e.id, w.step"),
      erase_wait_(db, "DELETE FROM hapax_waits WHERE seq = ? AND step = ?"),
      erase_waits_(db, "DELETE FROM hapax_waits WHERE seq = ?"),
      put_signal_(db, "INSERT INTO hapax_signals (seq, no, at, name, value, sum) VALUES (?, ?, ?, ?, ?, ?)"),
      find_signal_(db, "SELECT no, at, value, sum FROM hapax_signals WHERE seq = ? AND name = ? ORDER BY no LIMIT 1"),
      signals_(db, "SELECT no, at, name, value, sum FROM hapax_signals WHERE seq = ?"),
      erase_signal_(db, "DELETE FROM hapax_signals WHERE seq = ? AND no = ?"),
      erase_signals_(db, "DELETE FROM hapax_signals WHERE seq = ?") {}

void RunTables::load(Row& row) {
  Run run(load_);
  if (!run.bind(row.seq).next()) return;
  RunState& state = row.execution.run;
  int column = 0;
  fields(ReadColumns(run, column), state);
  FieldUnpacker committed(run.blob(column));
  committed.read(state.committed);
  if (!committed.ended_well()) row.execution.damaged = true;
}

namespace {

void store_run_state(Run run, const Row& row) {
  const RunState& state = row.execution.run;
  FieldPacker packer;
  packer.write(state.committed);
  const std::string committed = packer.take();
  fields(BindColumns(run), state);
  run.bind_blob(committed).bind(row.seq).done();
}

Wait read_wait(const Run& run) {
  Wait wait;
  wait.run = run.bytes<ExecutionId>(0);
  wait.step = run.int32(1);
  wait.signal = run.text(2);
  wait.until = run.time_if(3);
  wait.on = run.bytes_if<ExecutionId>(4);
  return wait;
}

Event read_event(const Run& run) {
  Event event;
  int column = 0;
  fields(ReadColumns(run, column), event);
  event.damaged = !matches(run, column, checksum_of(event));
  return event;
}

// A signal that no step has waited for yet has no more than this.
Event as_stored(const Event& signal) {
  Event stored;
  stored.no = signal.no;
  stored.at = signal.at;
  stored.kind = Event::Kind::signal;
  stored.name = signal.name;
  stored.value = signal.value;
  return stored;
}

}  // namespace

void RunTables::insert(const Row& row) { store_run_state(Run(insert_), row); }

void RunTables::save(const Row& row) { store_run_state(Run(save_), row); }

void RunTables::erase(std::int64_t seq) {
  Run(erase_).bind(seq).done();
  erase_events(seq);
  erase_waits(seq);
  Run(erase_signals_).bind(seq).done();
}

std::optional<ExecutionId> RunTables::latest(const std::string& name_space, const std::string& workflow_id) {
  Run run(latest_);
  if (!run.bind(key_hash(workflow_id)).bind(workflow_id).bind(name_space).next()) return std::nullopt;
  return run.bytes<ExecutionId>(0);
}

std::vector<ExecutionId> RunTables::steps_of(const ExecutionId& id) {
  std::vector<ExecutionId> steps;
  Run run(steps_);
  run.bind(id);
  while (run.next()) steps.push_back(run.bytes<ExecutionId>(0));
  return steps;
}

void RunTables::append(std::int64_t seq, const Event& event) {
  Run run(append_);
  run.bind(seq);
  fields(BindColumns(run), event);
  run.bind(std::int64_t{checksum_to_store(checksum_of(event), event.damaged)}).done();
}

std::vector<Event> RunTables::events(std::int64_t seq, std::int64_t after, std::int32_t limit, PageBudget& budget) {
  std::vector<Event> events;
  Run run(events_);
  run.bind(seq).bind(after).bind(limit);
  while (run.next() && add_event(events, read_event(run), budget)) {}
  return events;
}

std::vector<Event> RunTables::all_events(std::int64_t seq) {
  std::vector<Event> events;
  Run run(events_);
  run.bind(seq).bind(0).bind(kAllEvents);
  while (run.next()) events.push_back(read_event(run));
  return events;
}

void RunTables::erase_events(std::int64_t seq) { Run(erase_events_).bind(seq).done(); }

void RunTables::put_wait(std::int64_t seq, const Wait& wait) {
  Run(put_wait_).bind(seq).bind(wait.step).bind(wait.signal).bind(wait.until).bind(wait.on).done();
}

std::vector<Wait> RunTables::waits_of(std::int64_t seq) {
  std::vector<Wait> waits;
  Run run(waits_of_);
  run.bind(seq);
  while (run.next()) waits.push_back(read_wait(run));
  return waits;
}

std::vector<Wait> RunTables::waits_on(const ExecutionId& execution) {
  std::vector<Wait> waits;
  Run run(waits_on_);
  run.bind(execution);
  while (run.next()) waits.push_back(read_wait(run));
  return waits;
}

void RunTables::erase_wait(std::int64_t seq, std::int32_t step) { Run(erase_wait_).bind(seq).bind(step).done(); }
void RunTables::erase_waits(std::int64_t seq) { Run(erase_waits_).bind(seq).done(); }

void RunTables::put_signal(std::int64_t seq, const Event& signal) {
  Run run(put_signal_);
  run.bind(seq).bind(signal.no).bind(signal.at).bind(signal.name).bind(signal.value);
  run.bind(std::int64_t{checksum_to_store(checksum_of(as_stored(signal)), signal.damaged)}).done();
}

std::optional<Event> RunTables::take_signal(std::int64_t seq, const std::string& name) {
  Event signal;
  signal.kind = Event::Kind::signal;
  signal.name = name;
  {
    Run run(find_signal_);
    if (!run.bind(seq).bind(name).next()) return std::nullopt;
    signal.no = run.int64(0);
    signal.at = run.time(1);
    signal.value = run.text_if(2);
    signal.damaged = !matches(run, 3, checksum_of(signal));
  }
  Run(erase_signal_).bind(seq).bind(signal.no).done();
  return signal;
}

bool RunTables::signals_are_sound(std::int64_t seq) {
  Run run(signals_);
  run.bind(seq);
  while (run.next()) {
    Event signal;
    signal.kind = Event::Kind::signal;
    signal.no = run.int64(0);
    signal.at = run.time(1);
    signal.name = run.text(2);
    signal.value = run.text_if(3);
    if (!matches(run, 4, checksum_of(signal))) return false;
  }
  return true;
}

}  // namespace hapax::sqlite
