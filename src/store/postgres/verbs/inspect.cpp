// A walk over everything that is stored, for `hapax doctor --deep`.
#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "store/postgres/tables/run_tables.h"
#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

namespace {

constexpr std::int32_t kReadAtOnce = 8;  // executions: each may be large

const Statement kNextIds{"inspect_ids", "SELECT id FROM executions WHERE id > $1::uuid ORDER BY id LIMIT $2::int8"};
const Statement kLostIdentities{
    "inspect_identities",
    "SELECT encode(i.hash::text::bytea, 'escape') FROM identities i WHERE NOT EXISTS (SELECT FROM executions e"
    " WHERE e.id = i.owner) AND NOT EXISTS (SELECT FROM tombstones t WHERE t.owner = i.owner) LIMIT 100"};
const Statement kDocuments{"inspect_documents",
                           "SELECT 'the activity '::bytea || id, document FROM activities UNION ALL"
                           " SELECT 'the settings of '::bytea || name, document FROM settings"};

template <class Read>
void note(Inspection& inspection, const std::string& what, Read read) {
  try {
    read();
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
    inspection.findings.push_back(fmt::format("{}: {}", what, failure.what()));
  }
}

void check_history(Workspace& workspace, const ExecutionId& run) {
  for (std::int64_t after = 0;;) {
    send_read_events(workspace.connection(), run, after, 1000, kPageBytes);
    const auto events = receive_events(workspace.connection());
    if (events.empty()) return;
    for (const Event& event : events) require_sound(run, event);
    after = events.back().no;
  }
}

void check(Workspace& workspace, std::span<const ExecutionId> ids, Inspection& inspection) {
  for (const Row& row : read_whole(workspace, ids)) {
    note(inspection, fmt::format("the execution {}", row.execution.id.to_string()), [&] {
      require_sound(row.execution);
      if (row.execution.kind == Kind::workflow) check_history(workspace, row.execution.id);
    });
  }
}

// The ledger points to executions or tombstones, and what was put over the API is JSON.
void check_rest(Workspace& workspace, Inspection& inspection) {
  const Rows lost = workspace.connection().run(kLostIdentities, Parameters());
  for (int i = 0; i < lost.size(); ++i) {
    inspection.findings.push_back(fmt::format("the identity {} has no owner", Cells(lost, i).text()));
  }
  const Rows documents = workspace.connection().run(kDocuments, Parameters());
  for (int i = 0; i < documents.size(); ++i) {
    Cells cells(documents, i);
    const std::string what = cells.text();
    ++inspection.checked;
    try {
      parse_json(cells.bytes());
    } catch (const std::exception& error) {
      inspection.findings.push_back(fmt::format("{} is no JSON: {}", what, error.what()));
    }
  }
}

}  // namespace

Inspection inspect(Runner& runner, const std::string& from, std::int32_t limit) {
  return runner.read_aside([&](Workspace& workspace) {
    Inspection inspection;
    workspace.now();
    const ExecutionId after = ExecutionId::parse(from).value_or(ExecutionId{});
    const Rows rows = workspace.connection().run(kNextIds, Parameters().raw(after).int8(limit));
    std::vector<ExecutionId> ids;
    for (int i = 0; i < rows.size(); ++i) ids.push_back(Cells(rows, i).raw<ExecutionId>());
    for (std::span<const ExecutionId> rest(ids); !rest.empty();) {
      const std::size_t part = std::min<std::size_t>(rest.size(), kReadAtOnce);
      check(workspace, rest.first(part), inspection);
      rest = rest.subspan(part);
    }
    inspection.checked += std::ssize(ids);
    if (std::ssize(ids) == limit) {
      inspection.next = ids.back().to_string();
    } else {
      check_rest(workspace, inspection);
    }
    return inspection;
  });
}

}  // namespace hapax::postgres
