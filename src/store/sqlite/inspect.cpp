// A walk over everything that is stored, for `hapax doctor --deep`.
#include <fmt/format.h>

#include "core/json.h"
#include "store/sqlite/run_tables.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

constexpr std::int32_t kEventsAtOnce = 1000;
constexpr int kMostFindings = 100;  // of one kind: more say nothing new

// What reading it throws is a finding as well.
template <class Read>
void note(Inspection& inspection, const std::string& what, Read read) {
  try {
    read();
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
    inspection.findings.push_back(fmt::format("{}: {}", what, failure.what()));
  }
}

// Pages, indexes and constraints, as SQLite sees them.
void check_file(Connection& connection, Inspection& inspection) {
  Statement statement(connection, fmt::format("PRAGMA integrity_check({})", kMostFindings));
  Run run(statement);
  while (run.next()) {
    if (run.text(0) != "ok") inspection.findings.push_back(fmt::format("the file: {}", run.text(0)));
  }
}

void check_history(Tables& tables, const Row& row) {
  for (std::int64_t after = 0;;) {
    PageBudget budget;
    const auto events = tables.runs().events(row.seq, after, kEventsAtOnce, budget);
    if (events.empty()) break;
    for (const Event& event : events) require_sound(row.execution.id, event);
    after = events.back().no;
  }
  if (!tables.runs().signals_are_sound(row.seq)) {
    throw Failure(Failure::Code::corrupt, "a signal that waits does not match its checksum");
  }
}

void check_documents(Connection& connection, const char* sql, Inspection& inspection) {
  Statement statement(connection, sql);
  Run run(statement);
  while (run.next()) {
    ++inspection.checked;
    try {
      parse_json(run.text(1));
    } catch (const std::exception& error) {
      inspection.findings.push_back(fmt::format("{} is no JSON: {}", run.text(0), error.what()));
    }
  }
}

// The ledger points to executions or tombstones, and what was put over the API is JSON.
void check_rest(Connection& connection, Inspection& inspection) {
  {
    Statement statement(connection, fmt::format(R"sql(
      SELECT hex(i.hash) FROM hapax_identities i LEFT JOIN hapax_executions e ON e.seq = i.owner
      WHERE e.seq IS NULL AND NOT EXISTS (SELECT 1 FROM hapax_tombstones t WHERE t.hash = i.hash) LIMIT {})sql",
                                                kMostFindings));
    Run run(statement);
    while (run.next()) inspection.findings.push_back(fmt::format("the identity {} has no owner", run.text(0)));
  }
  check_documents(connection, "SELECT 'the activity ' || id || ' of ' || name_space, document FROM hapax_activities",
                  inspection);
  check_documents(connection, "SELECT 'the settings of ' || name || ' of ' || name_space, document FROM hapax_settings",
                  inspection);
}

}  // namespace

Inspection inspect(Tables& tables, const std::string& from, std::int32_t limit) {
  Inspection inspection;
  Connection& connection = tables.connection();
  if (from.empty()) note(inspection, "the file", [&] { check_file(connection, inspection); });
  std::int64_t last = from.empty() ? 0 : std::stoll(from);
  std::int32_t found = 0;
  note(inspection, "the table of executions", [&] {
    Statement statement(connection, "SELECT seq, hex(id) FROM hapax_executions WHERE seq > ? ORDER BY seq LIMIT ?");
    Run run(statement);
    run.bind(last).bind(limit);
    for (; run.next(); ++found, ++inspection.checked) {
      last = run.int64(0);
      note(inspection, fmt::format("the execution {}", run.text(1)), [&] {
        const auto row = tables.load_all(last);
        if (!row) return;
        require_sound(row->execution);
        if (row->execution.kind == Kind::workflow) check_history(tables, *row);
      });
    }
  });
  if (found == limit) {
    inspection.next = std::to_string(last);
  } else {
    note(inspection, "the ledger", [&] { check_rest(connection, inspection); });
  }
  return inspection;
}

}  // namespace hapax::sqlite
