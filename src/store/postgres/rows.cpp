#include "store/postgres/rows.h"

#include <fmt/format.h>

#include <bit>

#include "core/failure.h"
#include "store/postgres/sealed.h"

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

// Failed attempts are kept as one value: few executions have any, and they are only read with the execution. Numbers in
// eight bytes, texts with their length before them.
class Packed {
 public:
  void number(std::int64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) out_.push_back(static_cast<char>((value >> shift) & 0xff));
  }
  void text(std::string_view value) {
    number(std::ssize(value));
    out_.append(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Unpacked {
 public:
  explicit Unpacked(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  std::int64_t number() {
    std::uint64_t value = 0;
    for (const char byte : part(8)) value = value << 8 | static_cast<std::uint8_t>(byte);
    return std::bit_cast<std::int64_t>(value);
  }
  std::string_view text() { return part(static_cast<std::size_t>(number())); }

 private:
  std::string_view part(std::size_t size) {
    if (size > rest_.size())
      throw Failure(Failure::Code::corrupt, "PostgreSQL: an execution's failed attempts are damaged");
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }

  std::string_view rest_;
};

std::string pack(const std::vector<AttemptRecord>& attempts) {
  Packed out;
  for (const AttemptRecord& record : attempts) {
    out.number(record.attempt);
    out.text(record.worker);
    out.number(to_ms(record.started_at));
    out.number(to_ms(record.ended_at));
    out.text(record.error.type);
    out.text(record.error.message);
    out.text({reinterpret_cast<const char*>(record.secret.bytes.data()), record.secret.bytes.size()});
    out.number(record.reported ? 1 : 0);
  }
  return out.take();
}

std::vector<AttemptRecord> unpack(std::string_view text) {
  std::vector<AttemptRecord> attempts;
  for (Unpacked in(text); !in.done();) {
    AttemptRecord& record = attempts.emplace_back();
    record.attempt = static_cast<std::int32_t>(in.number());
    record.worker = in.text();
    record.started_at = from_ms(in.number());
    record.ended_at = from_ms(in.number());
    record.error.type = in.text();
    record.error.message = in.text();
    const std::string_view secret = in.text();
    std::memcpy(record.secret.bytes.data(), secret.data(), std::min(secret.size(), record.secret.bytes.size()));
    record.reported = in.number() != 0;
  }
  return attempts;
}

}  // namespace

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
                             "attempt_ends_by", "run_events", "run_seen", "wake_at"}) {
    values.emplace(absent, "NULL::int8");
  }
  for (const char* absent : {"error_type", "error_message", "failed_attempts", "run_committed"}) {
    values.emplace(absent, "NULL::bytea");
  }
  for (const char* absent : {"run_steps", "run_stuck"}) values.emplace(absent, "NULL::int4");
  values.emplace("continued_as", "NULL::uuid");
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
  constexpr Column kOfSuccessors[] = {{"superseded", Type::uuid}};
  static const RowType type{"batch_fact", std::span(kFactColumns) + std::span(kOfSuccessors)};
  return type;
}

const RowType& submission_rows() {
  constexpr Column kGiven[] = {
      {"ttl_ms", Type::int8},      {"run_at", Type::int8},      {"delay_ms", Type::int8},
      {"deadline_at", Type::int8}, {"deadline_ms", Type::int8}, {"status", Type::int2},
  };
  static const RowType type{"batch_submission", std::span(kFactColumns) + std::span(kGiven)};
  return type;
}

const RowType& started_submission_rows() {
  constexpr Column kLease[] = {{"lease_secret", Type::bytea}, {"lease_ms", Type::int8}, {"worker", Type::bytea}};
  static const RowType type{"batch_started_submission", std::span(submission_rows().columns) + std::span(kLease)};
  return type;
}

const RowType& state_rows() {
  static const RowType type{"batch_run_state", std::span(kPlaceColumns) + std::span(kStateColumns)};
  return type;
}

const RowType& start_rows() {
  static const RowType type{"batch_start",
                            {{"spot", Type::tid},
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
  constexpr Column kRun[] = {{"run", Type::uuid}};
  static const RowType type{"batch_event", std::span(kRun) + std::span(kEventColumns)};
  return type;
}

const RowType& turn_rows() {
  static const RowType type{"batch_run_turn",
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
  static const RowType type{"batch_step",
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

// What only the database knows of a pending task, in the order in which it is read; then the rest of any execution.
constexpr const char* kBegunFacts[] = {
    "id",
    "priority",
    "max_attempts",
    "retry_initial_ms",
    "retry_factor",
    "retry_max_ms",
    "timeout_ms",
    "created_at",
    "identity_hash",
    "strategy",
    "scope_tag",
    "scope_name",
    "parent",
    "step",
    "parent_workflow_id",
    "type",
    "idempotency_key",
    "concurrency_key",
    "superseded",
    "input_hash",
};
constexpr const char* kBegunState[] = {
    "run_at",    "attempt",         "attempt_limit", "deadline_at",   "cancel_requested_at",
    "cancel_by", "attempt_ends_by", "error_type",    "error_message", "failed_attempts",
    "awaited",
};
constexpr const char* kOtherFacts[] = {"queue_no", "kind"};
constexpr const char* kOtherState[] = {
    "status",     "started_at", "finished_at", "lease_secret", "lease_expires_at", "worker",       "result",
    "run_events", "run_seen",   "run_steps",   "run_stuck",    "wake_at",          "continued_as", "run_committed",
};

std::string of_alias(std::span<const char* const> columns, const char* alias) {
  std::string out;
  for (const char* column : columns) out += fmt::format("{}{}.{}", out.empty() ? "" : ", ", alias, column);
  return out;
}

std::string begun_columns(const std::string& input) {
  return fmt::format("{}, {}, {}", of_alias(kBegunFacts, "e"), input, of_alias(kBegunState, "s"));
}

std::string row_columns(const std::string& input) {
  return fmt::format("{}, {}, {}, coalesce((SELECT true FROM executions p WHERE p.id = e.parent), false)",
                     begun_columns(input), of_alias(kOtherFacts, "e"), of_alias(kOtherState, "s"));
}

std::string input_up_to(const std::string& bytes) {
  return fmt::format("CASE WHEN octet_length(e.input) <= {} THEN e.input ELSE ''::bytea END", bytes);
}

}  // namespace

std::string begun_columns_with_input_up_to(const std::string& bytes) { return begun_columns(input_up_to(bytes)); }

std::string row_columns(bool with_input) { return row_columns(std::string(with_input ? "e.input" : "''::bytea")); }

std::string row_columns_with_input_up_to(const std::string& bytes) { return row_columns(input_up_to(bytes)); }

void read_begun(Cells& cells, Execution& e) {
  e.id = cells.raw<ExecutionId>();
  e.priority = static_cast<std::int32_t>(cells.integer());
  e.max_attempts = static_cast<std::int32_t>(cells.integer());
  e.retry.initial = Duration(cells.integer());
  e.retry.factor = cells.real();
  e.retry.max = Duration(cells.integer());
  e.timeout = cells.duration_if();
  e.created_at = cells.time();
  if (const auto hash = cells.raw_if<IdentityHash>()) {
    Identity& identity = e.identity.emplace();
    identity.hash = *hash;
    identity.strategy = cells.word<Strategy>();
    identity.scope.tag = cells.word<Scope::Tag>();
    identity.scope.name = cells.text();
  } else {
    cells.skip(3);
  }
  e.parent = cells.raw_if<ExecutionId>();
  e.step = static_cast<std::int32_t>(cells.integer());
  e.parent_workflow_id = cells.text_if().value_or("");
  e.type = cells.text();
  e.idempotency_key = cells.text_if();
  e.concurrency_key = cells.text_if();
  e.superseded = cells.raw_if<ExecutionId>();
  e.input_hash = cells.raw<InputHash>();
  unseal_input(e, cells.bytes());

  e.run_at = cells.time();
  e.attempt = static_cast<std::int32_t>(cells.integer());
  e.attempt_limit = static_cast<std::int32_t>(cells.integer());
  e.deadline_at = cells.time_if();
  e.cancel_requested_at = cells.time_if();
  e.cancel_by = cells.time_if();
  e.attempt_ends_by = cells.time_if();
  if (auto type = cells.text_if()) {
    AttemptError& error = e.error.emplace();
    error.type = *std::move(type);
    error.message = unseal_message(error.type, cells.bytes(), e.damaged);
  } else {
    cells.skip();
  }
  if (const auto attempts = cells.bytes_if()) {
    const std::string_view packed = unseal_attempts(*attempts, e.damaged);
    if (!e.damaged) e.failed_attempts = unpack(packed);
  }
  e.awaited = cells.boolean();
}

void read_row(Cells& cells, Row& row) {
  Execution& e = row.execution;
  read_begun(cells, e);
  row.queue_no = static_cast<std::int32_t>(cells.integer());
  e.kind = cells.word<Kind>();
  e.status = cells.word<Status>();
  e.started_at = cells.time_if();
  e.finished_at = cells.time_if();
  e.lease_secret = cells.raw_if<LeaseSecret>();
  e.lease_expires_at = cells.time_if();
  e.worker = cells.text();
  e.result = unseal_json(cells.bytes_if(), e.damaged);
  e.run.events = cells.integer_if().value_or(0);
  e.run.seen = cells.integer_if().value_or(0);
  e.run.steps = static_cast<std::int32_t>(cells.integer_if().value_or(0));
  e.run.stuck = static_cast<std::int32_t>(cells.integer_if().value_or(0));
  e.run.wake_at = cells.time_if();
  e.run.continued_as = cells.raw_if<ExecutionId>();
  if (const auto committed = cells.text_if()) e.run.committed = unpack_turns(*committed);
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

void write_facts(Batch& facts, const Row& row) {
  const Execution& e = row.execution;
  facts.begin_row();
  facts.next().raw(e.id);
  facts.next().integer(row.queue_no);
  facts.next().word(e.kind);
  facts.next().integer(e.priority);
  facts.next().integer(e.max_attempts);
  facts.next().integer(e.retry.initial.count());
  facts.next().real(e.retry.factor);
  facts.next().integer(e.retry.max.count());
  facts.next().duration_if(e.timeout);
  facts.next().time(e.created_at);
  facts.next().bytes_if(e.concurrency_key);
  if (e.identity) {
    facts.next().raw(e.identity->hash);
    facts.next().word(e.identity->strategy);
    facts.next().word(e.identity->scope.tag);
    facts.next().bytes(e.identity->scope.name);
  } else {
    for (int i = 0; i < 4; ++i) facts.next().null();
  }
  facts.next().raw_if(e.parent);
  facts.next().integer(e.step);
  e.parent_workflow_id.empty() ? facts.next().null() : facts.next().bytes(e.parent_workflow_id);
  facts.next().bytes(e.type);
  if (e.idempotency_key) {
    facts.next().integer(key_number(*e.idempotency_key));
    facts.next().bytes(*e.idempotency_key);
  } else {
    for (int i = 0; i < 2; ++i) facts.next().null();
  }
  facts.next().raw(e.input_hash);
  facts.next().bytes(seal_input(e, e.parent_workflow_id));
}

void write_state_row(Batch& states, const Row& row, bool has_parent) {
  const Execution& e = row.execution;
  states.begin_row();
  states.next().raw(e.id);
  states.next().integer(row.queue_no);
  states.next().word(e.kind);
  states.next().integer(e.priority);
  states.next().bytes_if(e.concurrency_key);
  states.next().boolean(has_parent);

  states.next().word(e.status);
  states.next().time(e.run_at);
  states.next().time_if(e.due_at());
  states.next().integer(e.attempt);
  states.next().integer(e.attempt_limit);
  states.next().time_if(e.deadline_at);
  states.next().time_if(e.started_at);
  states.next().time_if(e.finished_at);
  states.next().time_if(e.cancel_requested_at);
  states.next().time_if(e.cancel_by);
  states.next().raw_if(e.lease_secret);
  states.next().time_if(e.lease_expires_at);
  states.next().time_if(e.attempt_ends_by);
  states.next().bytes(e.worker);
  if (e.error) {
    states.next().bytes(e.error->type);
    states.next().bytes(seal_message(*e.error, e.damaged));
  } else {
    for (int i = 0; i < 2; ++i) states.next().null();
  }
  states.next().bytes_if(seal_json(e.result, e.damaged));
  if (e.failed_attempts.empty()) {
    states.next().null();
  } else {
    states.next().bytes(seal_attempts(pack(e.failed_attempts), e.damaged));
  }
  states.next().boolean(e.awaited);
  if (e.kind == Kind::workflow) {
    states.next().integer(e.run.events);
    states.next().integer(e.run.seen);
    states.next().integer(e.run.steps);
    states.next().integer(e.run.stuck);
    states.next().time_if(e.run.wake_at);
    states.next().raw_if(e.run.continued_as);
    e.run.committed.empty() ? states.next().null() : states.next().bytes(pack(e.run.committed));
  } else {
    for (int i = 0; i < 7; ++i) states.next().null();
  }
}

void write_event(Batch& events, const ExecutionId& run, const Event& event) {
  events.begin_row();
  events.next().raw(run);
  events.next().integer(event.no);
  events.next().time(event.at);
  events.next().word(event.kind);
  events.next().integer(event.step);
  events.next().bytes(event.name);
  events.next().bytes_if(event.key);
  events.next().raw_if(event.execution);
  events.next().time_if(event.until);
  event.status ? events.next().word(*event.status) : events.next().null();
  events.next().bytes_if(seal_json(event.value, event.damaged));
  event.error ? events.next().bytes(event.error->type) : events.next().null();
  event.error ? events.next().bytes(seal_message(*event.error, event.damaged)) : events.next().null();
}

std::int32_t key_number(std::string_view key) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char byte : key) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return std::bit_cast<std::int32_t>(hash);
}

}  // namespace hapax::postgres
