// Executions as rows. Each list of columns is written once, here: statements, what they are given and what is read from
// them follow its order.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/execution.h"
#include "core/workflow.h"
#include "store/postgres/connection/connection.h"
#include "store/postgres/connection/values.h"

namespace hapax::postgres {

// The columns that core/fields.h describes, and the store's own.
const std::vector<Column>& fact_columns();   // of `executions`
const std::vector<Column>& state_columns();  // of `open` and `closed`: those that change
const std::vector<Column>& event_columns();  // of `events`, but for the run

// Of `open` and `closed`: those by which they are looked through, which never change.
inline const std::vector<Column> kPlaceColumns{
    {"id", Type::uuid, false},
    {"queue_no", Type::int4, false},
    {"kind", Type::int2, false},
    {"priority", Type::int4, false},
    {"type", Type::bytea, false},
    {"concurrency_key", Type::bytea},
    {"has_parent", Type::boolean, false},
};

// The rows of batches.
const RowType& fact_rows();                // of `executions`
const RowType& submission_rows();          // the same, and what becomes of it at the time of its creation
const RowType& started_submission_rows();  // the same, and the lease of an attempt that begins with that
const RowType& state_rows();               // of `open` and `closed`
const RowType& start_rows();  // where a row of `open` is, and what an attempt begins with: a claim writes nothing else
const RowType& event_rows();  // of `events`
const RowType& turn_rows();   // a turn, by what its run must be and what becomes of it
const RowType& done_step_rows();  // of `executions`: steps that were done within their turns

// "id uuid NOT NULL, kind int2 NOT NULL": as CREATE TABLE has them; without the constraints, as CREATE TYPE does.
std::string definitions(std::span<const Column> columns, bool constraints = true);
// "a.id, a.kind": the columns of the table called `alias`; without an alias, their bare names.
std::string names(std::span<const Column> columns, const std::string& alias = "");
// "unnest($3::uuid[], $4::int2[]) AS g (id, kind)": the columns of a batch as a table, from that parameter on.
std::string unnest(std::span<const Column> columns, int first_parameter, const std::string& alias);
// "unnest($3::batch_event[]) AS g": the same of a batch of rows.
std::string unnest(const RowType& rows, int parameter, const std::string& alias);

// "INSERT INTO events (run, …) SELECT g.run, … FROM unnest($1::batch_event[]) AS g".
std::string insert_into(const std::string& table, const RowType& rows);

// An identity's hash as the ledger has it, which is the first half of it.
std::string ledger_hash(const std::string& hash);
void write_ledger_hash(Values& values, const IdentityHash& hash);

// "INSERT INTO executions (…) SELECT …": `values` are of these columns, from a table called `alias`. Whatever has a key
// goes to the last shelf of the index `keys`.
std::string insert_facts(std::span<const Column> columns, const std::string& values, const std::string& alias);
inline constexpr int kShelfBits = 18;  // of the number of keys on a shelf: some 8 MB of index
// The executions of that key in these queues (an array), from all shelves but those before the first that has any,
// which QueueNumbers knows. The key's number finds them, the key itself tells them apart.
std::string lookup_key(const std::string& first_shelf, const std::string& key_hash, const std::string& key,
                       const std::string& alias, const std::string& queues);

// "LATERAL (SELECT * FROM open x WHERE x.id = g.id OFFSET 0) s": for each row before it, the one of that key. A plain
// join leaves it to the planner where to begin, and a plan that was made while the table was small would begin with all
// of the table.
std::string lookup(const std::string& table, const std::string& column, const std::string& value,
                   const std::string& alias);
// The same to be changed: "LATERAL (SELECT x.ctid …) s", whose place is the condition of an UPDATE or DELETE: o.ctid =
// s.place.
std::string lookup_place(const std::string& table, const std::string& column, const std::string& value,
                         const std::string& alias);
// The state of the execution `e`, as `s`, from the table that it is in; or of one that was done within its turn, from
// itself.
std::string lookup_state();
// The latter, for the columns of state_rows(): of the row called `alias` whose done_secret is not null.
std::string done_state(const std::string& alias, const std::string& has_parent);
// What is selected for each column: the value that is given for it, otherwise the column of the table called `alias`.
using ColumnValues = std::map<std::string_view, std::string>;
std::string select_list(std::span<const Column> columns, const ColumnValues& values, const std::string& alias);
std::vector<Column> operator+(std::span<const Column> a, std::span<const Column> b);

// Where a row is, its ctid: for as long as the transaction has it locked, or has just written it.
struct RowLocation {
  std::array<std::uint8_t, 6> bytes{};
};

// An execution and what the tables know beside it.
struct Row {
  enum class Place { nowhere, open, closed };

  Execution execution;
  std::int32_t queue_no = 0;
  bool parent_exists = false;
  Place stored = Place::nowhere;  // where its state is in the database
  RowLocation location;           // of what a claim has locked
  std::int64_t input_bytes = 0;   // of what a claim has locked, whether the input was read or not

  std::int64_t payload_bytes() const { return execution.payload_bytes() + (execution.input.empty() ? input_bytes : 0); }
};

// What a statement must select to be read by read_row: facts of `e`, state of `s`.
std::string row_columns(bool with_input);
// The same with its input only up to that many bytes, or else as empty, which no input is.
std::string row_columns_with_input_up_to(const std::string& bytes);
// The same with its payloads where the condition holds: elsewhere the row cannot be read.
std::string row_columns_where(const std::string& condition);
// Of facts `e` and state `s`: what the execution weighs.
const std::string& payload_bytes();
// Reads an execution, but for the names of its queue.
void read_row(Cells& cells, Row& row);

// The same of a task that a claim has just begun, without what the claim itself knows: where it found the task, and
// what an attempt begins with. Every value that a statement gives back is paid for twice, here and there.
std::string begun_columns_with_input_up_to(const std::string& bytes);
void read_begun(Cells& cells, Execution& task);

// The columns of a batch of rows, filled one by one.
class Columns {
 public:
  explicit Columns(std::span<const Column> columns);

  Array& operator[](std::size_t column) { return arrays_[column]; }
  Array& next() { return arrays_[position_++]; }
  void begin_row() { position_ = 0; }
  std::int32_t rows() const { return arrays_.front().size(); }
  void bind(Parameters& parameters);  // all of them; they are empty afterwards

 private:
  std::vector<Array> arrays_;
  std::size_t position_ = 0;
};

// Begins a row of fact_rows(), or of one that has more columns after those.
void write_facts(Batch& facts, const Execution& execution, std::int32_t queue_no);
void write_state_row(Batch& states, const Row& row, bool has_parent);  // of state_rows()

void write_event(Batch& events, const ExecutionId& run, const Event& event);  // of event_rows()

// Unless there are no rows.
void send_silently(Connection& connection, const Statement& statement, Batch batch);

// The small number that stands for an idempotency key in its index. Equal keys have equal numbers; not the reverse.
std::int32_t key_number(std::string_view key);

}  // namespace hapax::postgres
