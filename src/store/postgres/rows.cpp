#include "store/postgres/rows.h"

#include <fmt/format.h>

#include <bit>

#include "core/failure.h"

namespace hapax::postgres {

namespace {

const char* name_of(Type type) {
  switch (type) {
    case Type::boolean: return "bool";
    case Type::bytea: return "bytea";
    case Type::int8: return "int8";
    case Type::int2: return "int2";
    case Type::int4: return "int4";
    case Type::float8: return "float8";
    case Type::uuid: return "uuid";
  }
  return "";
}

// Failed attempts are kept as one value: few executions have any, and nobody looks for them by anything but the execution.
// Numbers in eight bytes, texts with their length before them.
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

std::string one_row(std::span<const Column> columns, int first_parameter, const std::string& alias) {
  std::string values;
  for (const Column& column : columns) {
    values += fmt::format("{}${}::{}", values.empty() ? "" : ", ", first_parameter++, name_of(column.type));
  }
  return fmt::format("(VALUES ({})) AS {} ({})", values, alias, names(columns));
}

std::string lookup(const std::string& table, const std::string& column, const std::string& value,
                   const std::string& alias) {
  return fmt::format("LATERAL (SELECT * FROM {} x WHERE x.{} = {} OFFSET 0) {}", table, column, value, alias);
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

std::string row_columns(bool with_input) {
  const std::span<const Column> facts(kFactColumns);
  return fmt::format("{}, {}, coalesce((SELECT true FROM executions p WHERE p.id = e.parent), false), {}",
                     names(facts.first(facts.size() - 1), "e"), with_input ? "e.input" : "''::bytea",
                     names(kStateColumns, "s"));
}

void read_row(Cells& cells, Row& row) {
  Execution& e = row.execution;
  e.id = cells.raw<ExecutionId>();
  row.queue_no = static_cast<std::int32_t>(cells.integer());
  e.kind = cells.word<Kind>();
  e.priority = static_cast<std::int32_t>(cells.integer());
  e.max_attempts = static_cast<std::int32_t>(cells.integer());
  e.retry.initial = Duration(cells.integer());
  e.retry.factor = cells.real();
  e.retry.max = Duration(cells.integer());
  e.timeout = cells.duration_if();
  e.created_at = cells.time();
  e.concurrency_key = cells.text_if();
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
  cells.skip();  // key_hash
  e.idempotency_key = cells.text_if();
  e.input_hash = cells.raw<InputHash>();
  e.input = cells.text();
  row.parent_exists = cells.boolean();

  e.status = cells.word<Status>();
  e.run_at = cells.time();
  cells.skip();  // due_at
  e.attempt = static_cast<std::int32_t>(cells.integer());
  e.attempt_limit = static_cast<std::int32_t>(cells.integer());
  e.deadline_at = cells.time_if();
  e.started_at = cells.time_if();
  e.finished_at = cells.time_if();
  e.cancel_requested_at = cells.time_if();
  e.cancel_by = cells.time_if();
  e.lease_secret = cells.raw_if<LeaseSecret>();
  e.lease_expires_at = cells.time_if();
  e.attempt_ends_by = cells.time_if();
  e.worker = cells.text();
  if (auto type = cells.text_if()) {
    e.error = AttemptError{*std::move(type), cells.text()};
  } else {
    cells.skip();
  }
  e.result = cells.text_if();
  if (const auto attempts = cells.text_if()) e.failed_attempts = unpack(*attempts);
  e.awaited = cells.boolean();
  e.run.events = cells.integer_if().value_or(0);
  e.run.seen = cells.integer_if().value_or(0);
  e.run.steps = static_cast<std::int32_t>(cells.integer_if().value_or(0));
  e.run.stuck = static_cast<std::int32_t>(cells.integer_if().value_or(0));
  e.run.wake_at = cells.time_if();
  e.run.continued_as = cells.raw_if<ExecutionId>();
  row.stored = is_closed(e.status) ? Row::Place::closed : Row::Place::open;
}

Columns::Columns(std::span<const Column> columns) {
  for (const Column& column : columns) arrays_.emplace_back(column.type);
}

void Columns::bind(Parameters& parameters) {
  for (Array& array : arrays_) parameters.array(std::move(array));
}

void Columns::bind_next(Parameters& parameters) {
  for (Array& array : arrays_) {
    const auto value = array.next();
    value ? parameters.bytes(*value) : parameters.null();
  }
}

void Columns::send_silently(Connection& connection, const BatchStatement& statement) {
  constexpr std::int32_t kFew = 8;
  if (rows() > kFew) {
    Parameters parameters;
    bind(parameters);
    return connection.send_silently(statement.many, parameters);
  }
  for (std::int32_t row = 0; row < rows(); ++row) {
    Parameters parameters;
    bind_next(parameters);
    connection.send_silently(statement.one, parameters);
  }
}

void write_facts(Columns& columns, const Row& row) {
  const Execution& e = row.execution;
  columns.begin_row();
  columns.next().raw(e.id);
  columns.next().integer(row.queue_no);
  columns.next().word(e.kind);
  columns.next().integer(e.priority);
  columns.next().integer(e.max_attempts);
  columns.next().integer(e.retry.initial.count());
  columns.next().real(e.retry.factor);
  columns.next().integer(e.retry.max.count());
  columns.next().duration_if(e.timeout);
  columns.next().time(e.created_at);
  columns.next().bytes_if(e.concurrency_key);
  if (e.identity) {
    columns.next().raw(e.identity->hash);
    columns.next().word(e.identity->strategy);
    columns.next().word(e.identity->scope.tag);
    columns.next().bytes(e.identity->scope.name);
  } else {
    for (int i = 0; i < 4; ++i) columns.next().null();
  }
  columns.next().raw_if(e.parent);
  columns.next().integer(e.step);
  e.parent_workflow_id.empty() ? columns.next().null() : columns.next().bytes(e.parent_workflow_id);
  columns.next().bytes(e.type);
  if (e.idempotency_key) {
    columns.next().integer(key_number(*e.idempotency_key));
    columns.next().bytes(*e.idempotency_key);
  } else {
    for (int i = 0; i < 2; ++i) columns.next().null();
  }
  columns.next().raw(e.input_hash);
  columns.next().bytes(e.input);
}

void write_state_row(Columns& columns, const Row& row, bool has_parent) {
  const Execution& e = row.execution;
  columns.begin_row();
  columns.next().raw(e.id);
  columns.next().integer(row.queue_no);
  columns.next().word(e.kind);
  columns.next().integer(e.priority);
  columns.next().bytes_if(e.concurrency_key);
  columns.next().boolean(has_parent);

  columns.next().word(e.status);
  columns.next().time(e.run_at);
  columns.next().time_if(e.due_at());
  columns.next().integer(e.attempt);
  columns.next().integer(e.attempt_limit);
  columns.next().time_if(e.deadline_at);
  columns.next().time_if(e.started_at);
  columns.next().time_if(e.finished_at);
  columns.next().time_if(e.cancel_requested_at);
  columns.next().time_if(e.cancel_by);
  columns.next().raw_if(e.lease_secret);
  columns.next().time_if(e.lease_expires_at);
  columns.next().time_if(e.attempt_ends_by);
  columns.next().bytes(e.worker);
  if (e.error) {
    columns.next().bytes(e.error->type);
    columns.next().bytes(e.error->message);
  } else {
    for (int i = 0; i < 2; ++i) columns.next().null();
  }
  columns.next().bytes_if(e.result);
  if (e.failed_attempts.empty()) {
    columns.next().null();
  } else {
    columns.next().bytes(pack(e.failed_attempts));
  }
  columns.next().boolean(e.awaited);
  if (e.kind == Kind::workflow) {
    columns.next().integer(e.run.events);
    columns.next().integer(e.run.seen);
    columns.next().integer(e.run.steps);
    columns.next().integer(e.run.stuck);
    columns.next().time_if(e.run.wake_at);
    columns.next().raw_if(e.run.continued_as);
  } else {
    for (int i = 0; i < 6; ++i) columns.next().null();
  }
}

std::int32_t key_number(std::string_view key) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char byte : key) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return std::bit_cast<std::int32_t>(hash);
}

}  // namespace hapax::postgres
