#include "store/postgres/tables/rows.h"

#include <fmt/format.h>

#include <bit>

#include "store/postgres/tables/columns.h"

namespace hapax::postgres {

namespace {

const char* name_of(Type type) {
  switch (type) {
    case Type::boolean: return "bool";
    case Type::bytea: return "bytea";
    case Type::int8: return "int8";
    case Type::int2: return "int2";
    case Type::int4: return "int4";
    case Type::tid: return "tid";
    case Type::float8: return "float8";
    case Type::uuid: return "uuid";
  }
  return "";
}

const auto kRuling = [](auto&& visit, auto& e) { ruling_fields(visit, e); };
const auto kTelling = [](auto&& visit, auto& e) { telling_fields(visit, e); };
const auto kWaiting = [](auto&& visit, auto& e) { waiting_fields(visit, e); };
const auto kAttempt = [](auto&& visit, auto& e) { attempt_fields(visit, e); };
// Absent of a task.
const auto kRun = [](auto&& visit, auto& e) { visit(field::hidden("run"), std::optional(e.run)); };

}  // namespace

const std::vector<Column>& fact_columns() {
  static const std::vector<Column> columns =
      std::vector<Column>{{"queue_no", Type::int4, false}, {"kind", Type::int2, false}} + columns_of(kRuling) +
      columns_of(kTelling) +
      std::vector<Column>{{"rare", Type::bytea}, {"key_hash", Type::int4}, {"input", Type::bytea, false}};
  return columns;
}

const std::vector<Column>& state_columns() {
  static const std::vector<Column> columns =
      std::vector<Column>{{"due_at", Type::int8}} + columns_of(kWaiting) + columns_of(kAttempt) + columns_of(kRun);
  return columns;
}

const std::vector<Column>& event_columns() {
  static const std::vector<Column> columns = [] {
    std::vector<Column> all;
    const Event any;
    fields(
        [&]<class Value>(const Field& field, const Value&) {
          spread<Value>(std::string(field.name), false,
                        [&]<class Part>(const std::string& name, std::type_identity<Part>, bool nullable) {
                          all.push_back({name, type_of<Part>(), nullable});
                        });
        },
        any);
    return all;
  }();
  return columns;
}

std::string definitions(std::span<const Column> columns, bool constraints) {
  std::string out;
  for (const Column& column : columns) {
    out += fmt::format("{}{} {}{}", out.empty() ? "" : ", ", column.name, name_of(column.type),
                       constraints && !column.nullable ? " NOT NULL" : "");
  }
  return out;
}

std::string names(std::span<const Column> columns, const std::string& alias) {
  std::string out;
  for (const Column& column : columns) {
    out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", alias, alias.empty() ? "" : ".", column.name);
  }
  return out;
}

std::string unnest(std::span<const Column> columns, int first_parameter, const std::string& alias) {
  std::string arrays;
  for (const Column& column : columns) {
    arrays += fmt::format("{}${}::{}[]", arrays.empty() ? "" : ", ", first_parameter++, name_of(column.type));
  }
  return fmt::format("unnest({}) AS {} ({})", arrays, alias, names(columns));
}

std::string unnest(const RowType& rows, int parameter, const std::string& alias) {
  return fmt::format("unnest(${}::{}[]) AS {}", parameter, rows.name, alias);
}

std::string insert_into(const std::string& table, const RowType& rows) {
  return fmt::format("INSERT INTO {} ({}) SELECT {} FROM {}", table, names(rows.columns), names(rows.columns, "g"),
                     unnest(rows, 1, "g"));
}

std::string lookup(const std::string& table, const std::string& column, const std::string& value,
                   const std::string& alias) {
  return fmt::format("LATERAL (SELECT * FROM {} x WHERE x.{} = {} OFFSET 0) {}", table, column, value, alias);
}

std::string ledger_hash(const std::string& hash) { return fmt::format("encode(substr({}, 1, 16), 'hex')::uuid", hash); }

void write_ledger_hash(Values& values, const IdentityHash& hash) {
  values.bytes({reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size() / 2});
}

std::string insert_facts(std::span<const Column> columns, const std::string& values, const std::string& alias) {
  return fmt::format(
      "INSERT INTO executions ({}, key_shelf) SELECT {}, CASE WHEN {}.key_hash IS NULL THEN 0 ELSE"
      " ((nextval('keyed') >> {}) + 1)::int4 END",
      names(columns), values, alias, kShelfBits);
}

std::string lookup_key(const std::string& first_shelf, const std::string& key_hash, const std::string& key,
                       const std::string& alias, const std::string& queues) {
  return fmt::format(
      "generate_series({}, (SELECT ((k.last_value >> {}) + 1)::int4 FROM keyed k)) AS b (shelf), LATERAL (SELECT * "
      "FROM executions x"
      " WHERE x.key_shelf = b.shelf AND x.key_hash = {} AND x.queue_no = ANY({}) AND x.idempotency_key = {} OFFSET 0) "
      "{}",
      first_shelf, kShelfBits, key_hash, queues, key, alias);
}

std::string select_list(std::span<const Column> columns, const ColumnValues& values, const std::string& alias) {
  std::string list;
  for (const Column& column : columns) {
    const auto found = values.find(column.name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ",
                        found == values.end() ? fmt::format("{}.{}", alias, column.name) : found->second);
  }
  return list;
}

std::string done_state(const std::string& alias, const std::string& has_parent) {
  ColumnValues values{{"has_parent", has_parent},
                      {"status", fmt::format("{}::int2", static_cast<int>(Status::completed))},
                      {"attempt", "1"},
                      {"attempt_limit", alias + ".max_attempts"},
                      {"lease_secret", alias + ".done_secret"},
                      {"worker", alias + ".done_by"},
                      {"result", alias + ".done_result"},
                      {"awaited", "false"}};
  for (const char* time : {"run_at", "started_at", "finished_at"}) values.emplace(time, alias + ".created_at");
  for (const char* absent : {"due_at", "deadline_at", "cancel_requested_at", "cancel_by", "lease_expires_at",
                             "attempt_ends_by", "run_events", "run_seen", "run_wake_at"}) {
    values.emplace(absent, "NULL::int8");
  }
  for (const char* absent :
       {"error_type", "error_message", "error_stack", "error_details", "failed_attempts", "notes", "run_committed"}) {
    values.emplace(absent, "NULL::bytea");
  }
  for (const char* absent : {"run_steps", "run_stuck"}) values.emplace(absent, "NULL::int4");
  values.emplace("run_continued_as", "NULL::uuid");
  return select_list(state_rows().columns, values, alias);
}

std::string lookup_state() {
  const std::string columns = names(state_rows().columns);
  return fmt::format(
      "LATERAL (SELECT {0} FROM open o WHERE o.id = e.id UNION ALL SELECT {0} FROM closed c WHERE c.id = e.id"
      " UNION ALL SELECT {1} WHERE e.done_secret IS NOT NULL LIMIT 1) s",
      columns, done_state("e", "true"));
}

std::string lookup_place(const std::string& table, const std::string& column, const std::string& value,
                         const std::string& alias) {
  return fmt::format("LATERAL (SELECT x.ctid AS place FROM {} x WHERE x.{} = {} OFFSET 0) {}", table, column, value,
                     alias);
}

std::vector<Column> operator+(std::span<const Column> a, std::span<const Column> b) {
  std::vector<Column> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

const RowType& fact_rows() {
  static const RowType type{"batch_fact", fact_columns()};
  return type;
}

const RowType& submission_rows() {
  const std::vector<Column> given{
      {"ttl_ms", Type::int8},      {"run_at", Type::int8},      {"delay_ms", Type::int8},
      {"deadline_at", Type::int8}, {"deadline_ms", Type::int8}, {"status", Type::int2},
  };
  static const RowType type{"batch_submission", fact_columns() + given};
  return type;
}

const RowType& started_submission_rows() {
  const std::vector<Column> lease{{"lease_secret", Type::bytea}, {"lease_ms", Type::int8}, {"worker", Type::bytea}};
  static const RowType type{"batch_started_submission", submission_rows().columns + lease};
  return type;
}

const RowType& state_rows() {
  static const RowType type{"batch_state", kPlaceColumns + state_columns()};
  return type;
}

const RowType& start_rows() {
  static const RowType type{"batch_start",
                            {{"location", Type::tid},
                             {"id", Type::uuid},
                             {"due_at", Type::int8},
                             {"attempt", Type::int4},
                             {"started_at", Type::int8},
                             {"lease_secret", Type::bytea},
                             {"lease_expires_at", Type::int8},
                             {"attempt_ends_by", Type::int8},
                             {"worker", Type::bytea}}};
  return type;
}

const RowType& event_rows() {
  static const RowType type{"batch_event", std::vector<Column>{{"run", Type::uuid, false}} + event_columns()};
  return type;
}

const RowType& turn_rows() {
  static const RowType type{"batch_turn",
                            {{"id", Type::uuid},
                             {"queue_no", Type::int4},
                             {"attempt", Type::int4},
                             {"secret", Type::bytea},
                             {"seen", Type::int8},
                             {"steps", Type::int4},
                             {"is_over", Type::boolean},
                             {"result", Type::bytea},
                             {"events_now", Type::int8},
                             {"seen_now", Type::int8},
                             {"steps_now", Type::int4}}};
  return type;
}

const RowType& done_step_rows() {
  static const RowType type{"batch_done_step",
                            {{"id", Type::uuid},
                             {"queue_no", Type::int4},
                             {"priority", Type::int4},
                             {"max_attempts", Type::int4},
                             {"retry_initial_ms", Type::int8},
                             {"retry_factor", Type::float8},
                             {"retry_max_ms", Type::int8},
                             {"parent", Type::uuid},
                             {"parent_workflow_id", Type::bytea},
                             {"step", Type::int4},
                             {"type", Type::bytea},
                             {"input_hash", Type::bytea},
                             {"input", Type::bytea},
                             {"done_secret", Type::bytea},
                             {"done_by", Type::bytea},
                             {"done_result", Type::bytea},
                             {"done_event", Type::int8}}};
  return type;
}

namespace {

std::string of_alias(std::span<const Column> columns, const char* alias) { return names(columns, alias); }

std::string begun_columns(const std::string& input) {
  return fmt::format("{}, {}, e.rare, {}, {}", of_alias(columns_of(kRuling), "e"), of_alias(columns_of(kTelling), "e"),
                     input, of_alias(columns_of(kWaiting), "s"));
}

std::string row_columns(const std::string& input) {
  return fmt::format(
      "{}, e.queue_no, e.kind, {}, {}, coalesce((SELECT true FROM executions p WHERE p.id = e.parent), false)",
      begun_columns(input), of_alias(columns_of(kAttempt), "s"), of_alias(columns_of(kRun), "s"));
}

std::string input_up_to(const std::string& bytes) {
  return fmt::format("CASE WHEN octet_length(e.input) <= {} THEN e.input ELSE ''::bytea END", bytes);
}

}  // namespace

std::string begun_columns_with_input_up_to(const std::string& bytes) { return begun_columns(input_up_to(bytes)); }

std::string row_columns(bool with_input) { return row_columns(std::string(with_input ? "e.input" : "''::bytea")); }

std::string row_columns_with_input_up_to(const std::string& bytes) { return row_columns(input_up_to(bytes)); }

std::string row_columns_where(const std::string& condition) {
  const auto guarded = [&](const std::string& column) {
    return fmt::format("CASE WHEN {} THEN {} END", condition, column);
  };
  const auto guarded_states = [&](const std::vector<Column>& columns) {
    std::string list;
    for (const Column& column : columns) {
      const std::string name = std::string("s.") + column.name;
      list += (list.empty() ? "" : ", ") + (column.type == Type::bytea ? guarded(name) : name);
    }
    return list;
  };
  return fmt::format(
      "{}, {}, e.rare, {}, {}, e.queue_no, e.kind, {}, {}, coalesce((SELECT true FROM executions p WHERE p.id ="
      " e.parent), false)",
      of_alias(columns_of(kRuling), "e"), of_alias(columns_of(kTelling), "e"), guarded("e.input"),
      guarded_states(columns_of(kWaiting)), guarded_states(columns_of(kAttempt)), guarded_states(columns_of(kRun)));
}

const std::string& payload_bytes() {
  static const std::string sql =
      "octet_length(e.input) + coalesce(octet_length(s.result), 0) + coalesce(octet_length(s.error_message), 0)"
      " + coalesce(octet_length(s.failed_attempts), 0) + coalesce(octet_length(s.error_stack), 0)"
      " + coalesce(octet_length(s.error_details), 0) + coalesce(octet_length(s.notes), 0)";
  return sql;
}

namespace {

// The rare fields are one value, NULL of an execution that has none.
void write_rare(Values& values, const Execution& e) {
  bool any = false;
  rare_fields([&](const Field&, const auto& value) { any = any || value; }, e);
  if (!any) return values.null();
  FieldPacker packer;
  rare_fields(packer, e);
  values.bytes(seal_list(packer.take()));
}

void read_rare(Cells& cells, Execution& e) {
  const auto stored = cells.bytes_if();
  if (!stored) return;
  bool is_changed = false;
  FieldUnpacker unpacker(unseal_list(*stored, is_changed));
  if (!is_changed) rare_fields(unpacker, e);
  if (is_changed || !unpacker.ended_well()) e.damaged = true;
}

}  // namespace

void read_begun(Cells& cells, Execution& e) {
  ReadColumns read(cells, e.damaged);
  ruling_fields(read, e);
  telling_fields(read, e);
  read_rare(cells, e);
  unseal_input(e, cells.bytes());
  waiting_fields(read, e);
}

void read_row(Cells& cells, Row& row) {
  Execution& e = row.execution;
  read_begun(cells, e);
  row.queue_no = static_cast<std::int32_t>(cells.integer());
  e.kind = cells.word<Kind>();
  ReadColumns read(cells, e.damaged);
  attempt_fields(read, e);
  read.read_if_there(e.run);
  row.parent_exists = cells.boolean();
  row.stored = is_closed(e.status) ? Row::Place::closed : Row::Place::open;
}

Columns::Columns(std::span<const Column> columns) {
  for (const Column& column : columns) arrays_.emplace_back(column.type);
}

void Columns::bind(Parameters& parameters) {
  for (Array& array : arrays_) parameters.array(std::move(array));
}

void send_silently(Connection& connection, const Statement& statement, Batch batch) {
  if (batch.rows() == 0) return;
  Parameters parameters;
  connection.send_silently(statement, parameters.batch(std::move(batch)));
}

void write_facts(Batch& facts, const Execution& e, std::int32_t queue_no) {
  facts.begin_row();
  facts.next().integer(queue_no);
  facts.next().word(e.kind);
  WriteColumns write(facts);
  ruling_fields(write, e);
  telling_fields(write, e);
  write_rare(facts.next(), e);
  e.idempotency_key ? facts.next().integer(key_number(*e.idempotency_key)) : facts.next().null();
  facts.next().bytes(seal_input(e, e.parent_workflow_id));
}

void write_state_row(Batch& states, const Row& row, bool has_parent) {
  const Execution& e = row.execution;
  states.begin_row();
  states.next().raw(e.id);
  states.next().integer(row.queue_no);
  states.next().word(e.kind);
  states.next().integer(e.priority);
  states.next().bytes(e.type);
  states.next().bytes_if(e.concurrency_key);
  states.next().boolean(has_parent);
  states.next().time_if(e.due_at());
  WriteColumns write(states, e.damaged);
  state_fields(write, e);
  e.kind == Kind::workflow ? fields(write, e.run) : write.nulls<RunState>();
}

void write_event(Batch& events, const ExecutionId& run, const Event& event) {
  events.begin_row();
  events.next().raw(run);
  fields(WriteColumns(events, event.damaged), event);
}

std::int32_t key_number(std::string_view key) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char byte : key) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return std::bit_cast<std::int32_t>(hash);
}

}  // namespace hapax::postgres
