// What may run beside everything: find, list, count. And the small writes without rules.
#include <fmt/format.h>

#include <algorithm>

#include "store/postgres/tables/run_tables.h"
#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

namespace {

const Statement kFind{"find", fmt::format("SELECT {} FROM executions e JOIN {} ON true WHERE e.id = $1::uuid",
                                          row_columns(true), lookup_state())};
const Statement kFindAll{"find_all",
                         fmt::format("SELECT {} FROM unnest($1::uuid[]) AS g (id) JOIN {} ON true JOIN {} ON true",
                                     row_columns(true), lookup("executions", "id", "g.id", "e"), lookup_state())};

const Statement kCount{"count", R"sql(
SELECT q.name_space, q.queue, coalesce(sum(n.pending), 0)::int8, coalesce(sum(n.running), 0)::int8, min(n.oldest)
FROM queues q LEFT JOIN (
  SELECT queue_no, count(*) FILTER (WHERE status = 0) AS pending, count(*) FILTER (WHERE status = 1) AS running,
         min(run_at) FILTER (WHERE status = 0) AS oldest
  FROM open WHERE status IN (0, 1) GROUP BY queue_no) n
ON q.queue_no = n.queue_no GROUP BY q.name_space, q.queue ORDER BY q.name_space, q.queue)sql"};

// The pending ones of each queue by the indexes that begin with it.
std::string count_one(const std::string& running) {
  return R"sql(
WITH own AS MATERIALIZED (SELECT queue_no, queue FROM queues WHERE name_space = $1::bytea),
n AS (
  SELECT o.queue, c.pending, 0 AS running, c.oldest FROM own o, LATERAL (
    SELECT count(*) AS pending, min(x.run_at) AS oldest FROM open x
    WHERE x.queue_no = o.queue_no AND x.status = 0 AND NOT x.parked OFFSET 0) c
  UNION ALL
  SELECT o.queue, c.pending, 0, c.oldest FROM own o, LATERAL (
    SELECT count(*) AS pending, min(x.run_at) AS oldest FROM open x WHERE x.queue_no = o.queue_no AND x.parked OFFSET 0) c
  UNION ALL
  SELECT o.queue, 0, c.running, NULL FROM own o, )sql" +
         running + R"sql()
SELECT $1::bytea, queue, sum(pending)::int8, sum(running)::int8, min(oldest) FROM n
GROUP BY queue ORDER BY queue)sql";
}

// What runs: by the index of what runs anywhere, or by a walk over all that the namespace has.
const Statement kCountByRunning{"count_by_running",
                                count_one("(SELECT x.queue_no, count(*) AS running FROM open x WHERE x.status = 1"
                                          " GROUP BY x.queue_no) c WHERE c.queue_no = o.queue_no")};
// `IS TRUE` keeps the planner off the index of what runs.
const Statement kCountByStored{
    "count_by_stored", count_one("LATERAL (SELECT count(*) AS running FROM executions e, LATERAL (SELECT FROM open x"
                                 " WHERE x.id = e.id AND (x.status = 1) IS TRUE OFFSET 0) s"
                                 " WHERE e.queue_no = o.queue_no OFFSET 0) c")};

// Of each identity, unless there is an execution of that id. No payload is read.
const Statement kOwners{
    "owners",
    fmt::format("SELECT g.no, i.owner FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS g (hash, id, no)"
                " JOIN {} ON true JOIN LATERAL (SELECT x.identity_hash FROM executions x WHERE x.id = i.owner OFFSET 0)"
                " o ON {} = i.hash WHERE NOT EXISTS (SELECT FROM executions x WHERE x.id = g.id)",
                lookup("identities", "hash", "g.hash", "i"), ledger_hash("o.identity_hash"))};

const Statement kSettings{"settings",
                          "SELECT name_space, kind, name, document FROM settings ORDER BY name_space, kind, name"};
const Statement kPutSetting{"put_setting",
                            "INSERT INTO settings (name_space, kind, name, document)"
                            " VALUES ($1::bytea, $2::int2, $3::bytea, $4::bytea)"
                            " ON CONFLICT (name_space, kind, name) DO UPDATE SET document = excluded.document"};
const Statement kCheck{"check",
                       "INSERT INTO checks (only_one, checked_at) VALUES (1, $1::int8)"
                       " ON CONFLICT (only_one) DO UPDATE SET checked_at = excluded.checked_at"};

}  // namespace

std::vector<Row> read_whole(Workspace& workspace, std::span<const ExecutionId> ids) {
  if (ids.size() == 1) {
    workspace.connection().send(kFind, Parameters().raw(ids.front()));
  } else {
    Array array(Type::uuid);
    for (const ExecutionId& id : ids) array.raw(id);
    Parameters parameters;
    workspace.connection().send(kFindAll, parameters.array(std::move(array)));
  }
  workspace.now();
  const Rows rows = workspace.connection().receive();
  std::vector<Row> read(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    read_row(cells, read[static_cast<std::size_t>(i)]);
  }
  workspace.name(read);
  return read;
}

std::vector<std::optional<Execution>> find_all(Runner& runner, const std::string& name_space,
                                               std::span<const ExecutionId> ids) {
  return runner.read_aside([&](Workspace& workspace) {
    const std::vector<Row> read = read_whole(workspace, ids);
    std::map<ExecutionId, const Execution*> by_id;
    for (const Row& row : read) by_id.emplace(row.execution.id, &row.execution);
    std::vector<std::optional<Execution>> found;
    for (const ExecutionId& id : ids) {
      const auto row = by_id.find(id);
      const bool is_there = row != by_id.end() && row->second->name_space == name_space;
      if (is_there) require_sound(*row->second);
      found.push_back(is_there ? std::optional(*row->second) : std::nullopt);
    }
    return found;
  });
}

std::vector<QueueCount> count(Runner& runner, const std::optional<std::string>& name_space) {
  return runner.read_aside([&](Workspace& workspace) {
    if (name_space) {
      const bool by_running = fewer_run_than_are_stored(workspace, *name_space);
      workspace.connection().send(by_running ? kCountByRunning : kCountByStored, Parameters().bytes(*name_space));
    } else {
      workspace.connection().send(kCount);
    }
    workspace.now();
    const Rows rows = workspace.connection().receive();
    std::vector<QueueCount> counts;
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      QueueCount& count = counts.emplace_back();
      count.name_space = cells.text();
      count.queue = cells.text();
      count.pending = cells.integer();
      count.running = cells.integer();
      count.oldest_run_at = cells.time_if();
    }
    return counts;
  });
}

std::optional<FoundIdentity> find_identity(Runner& runner, const IdentityHash& hash) {
  return runner.read_aside([&](Workspace& workspace) -> std::optional<FoundIdentity> {
    workspace.read_identities({hash}, {});
    const LedgerEntry* entry = workspace.entry(hash);
    if (!entry) return std::nullopt;
    FoundIdentity found;
    found.entry = *entry;
    if (const Execution* owner = workspace.owner_of(*entry)) {
      require_sound(*owner);
      found.owner = *owner;
    }
    found.live = workspace.is_live(*entry);
    found.expires_at = workspace.dies_at(*entry);
    return found;
  });
}

std::vector<std::optional<ExecutionId>> owners(Runner& runner, std::span<const OwnerQuery> queries) {
  return runner.read_aside([&](Workspace& workspace) {
    Array hashes(Type::uuid), ids(Type::uuid);
    for (const OwnerQuery& query : queries) {
      write_ledger_hash(hashes, query.hash);
      ids.raw(query.submission);
    }
    Parameters parameters;
    workspace.connection().send(kOwners, parameters.array(std::move(hashes)).array(std::move(ids)));
    workspace.now();
    const Rows rows = workspace.connection().receive();
    std::vector<std::optional<ExecutionId>> owners(queries.size());
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      std::optional<ExecutionId>& owner = owners.at(static_cast<std::size_t>(cells.integer() - 1));
      owner = cells.raw<ExecutionId>();
    }
    return owners;
  });
}

std::vector<Event> history(Runner& runner, const ExecutionId& run, std::int64_t after, std::int32_t limit) {
  return runner.read_aside([&](Workspace& workspace) {
    workspace.now();
    send_read_events(workspace.connection(), run, after, std::max(limit, 0), kPageBytes);
    auto events = receive_events(workspace.connection());
    for (const Event& event : events) require_sound(run, event);
    return events;
  });
}

std::vector<SettingDocument> settings(Runner& runner) {
  return runner.read_aside([](Workspace& workspace) {
    workspace.connection().send(kSettings);
    workspace.now();
    const Rows rows = workspace.connection().receive();
    std::vector<SettingDocument> all;
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      SettingDocument& setting = all.emplace_back();
      setting.name_space = cells.text();
      setting.kind = cells.word<SettingDocument::Kind>();
      setting.name = cells.text();
      setting.document = cells.text();
    }
    return all;
  });
}

void put_setting(Runner& runner, const SettingDocument& setting) {
  Parameters parameters;
  parameters.bytes(setting.name_space).int2(static_cast<std::int64_t>(setting.kind));
  parameters.bytes(setting.name).bytes(setting.document);
  runner.run_at_once(kPutSetting, parameters);
}

void write_check(Runner& runner) { runner.run_at_once(kCheck, Parameters().time(runner.now())); }

}  // namespace hapax::postgres
