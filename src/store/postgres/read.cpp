// What may run beside everything: find, list, count. And the small writes without rules.
#include <fmt/format.h>

#include <algorithm>

#include "store/postgres/run_tables.h"
#include "store/postgres/verbs.h"

namespace hapax::postgres {

namespace {

const Statement kFind{"find", fmt::format("SELECT {} FROM executions e JOIN {} ON true WHERE e.id = $1::uuid",
                                          row_columns(true), lookup_state())};
const Statement kFindAll{"find_all",
                         fmt::format("SELECT {} FROM unnest($1::uuid[]) AS g (id) JOIN {} ON true JOIN {} ON true",
                                     row_columns(true), lookup("executions", "id", "g.id", "e"), lookup_state())};

// What may have to walk through much ends after ten seconds.
const Statement kBound{"bound_read", "SELECT set_config('statement_timeout', '10000', true)"};

const Statement kCount{"count", R"sql(
SELECT q.name_space, q.queue, sum(n.pending)::int8, sum(n.running)::int8, min(n.oldest) FROM (
  SELECT queue_no, count(*) FILTER (WHERE status = 0) AS pending, count(*) FILTER (WHERE status = 1) AS running,
         min(run_at) FILTER (WHERE status = 0) AS oldest
  FROM open WHERE status IN (0, 1) GROUP BY queue_no) n
JOIN queues q ON q.queue_no = n.queue_no GROUP BY q.name_space, q.queue ORDER BY q.name_space, q.queue)sql"};

const Statement kSettings{"settings",
                          "SELECT name_space, kind, name, document FROM settings ORDER BY name_space, kind, name"};
const Statement kPutSetting{"put_setting",
                            "INSERT INTO settings (name_space, kind, name, document)"
                            " VALUES ($1::bytea, $2::int2, $3::bytea, $4::bytea)"
                            " ON CONFLICT (name_space, kind, name) DO UPDATE SET document = excluded.document"};
const Statement kCheck{"check",
                       "INSERT INTO checks (only_one, checked_at) VALUES (1, $1::int8)"
                       " ON CONFLICT (only_one) DO UPDATE SET checked_at = excluded.checked_at"};

// The conditions of a list, each with its parameter.
class Conditions {
 public:
  // Its turn in the parameters: the caller adds the value.
  void add(const std::string& before, const char* type) {
    sql_ += fmt::format("{}{} ${}::{}", sql_.empty() ? " WHERE " : " AND ", before, ++count_, type);
  }
  std::string next_parameter(const char* type) { return fmt::format("${}::{}", ++count_, type); }
  const std::string& sql() const { return sql_; }

 private:
  std::string sql_;
  int count_ = 0;
};

// Few are open, and few are closed without success: those are looked for among themselves; all others by the narrowest
// index there is.
std::string list_sql(const ListFilter& filter, std::int32_t first_shelf, Parameters& parameters) {
  const bool by_status =
      filter.status && *filter.status != Status::completed && !filter.idempotency_key && !filter.parent;
  const bool unsuccessful = by_status && is_closed(*filter.status);
  const std::string id = by_status ? "s.id" : "e.id";
  Conditions conditions;
  std::string executions = "executions e";
  if (filter.idempotency_key) {
    const std::string shelf = conditions.next_parameter("int4"), number = conditions.next_parameter("int4"),
                      key = conditions.next_parameter("bytea");
    executions = lookup_key(shelf, number, key, "e");
    parameters.int4(first_shelf).int4(key_number(*filter.idempotency_key)).bytes(*filter.idempotency_key);
  }
  const std::string source = !by_status ? fmt::format("{} JOIN {} ON true", executions, lookup_state())
                             : unsuccessful
                                 ? "closed s JOIN " + lookup("executions", "id", "s.id", "e") + " ON s.status > 3"
                                 : "open s JOIN " + lookup("executions", "id", "s.id", "e") + " ON true";
  conditions.add("q.name_space =", "bytea");
  parameters.bytes(filter.name_space);
  conditions.add("e.kind =", "int2");
  parameters.int2(static_cast<std::int64_t>(filter.kind));
  if (filter.before) conditions.add(id + " <", "uuid"), parameters.raw(*filter.before);
  if (filter.queue) conditions.add("q.queue =", "bytea"), parameters.bytes(*filter.queue);
  if (filter.type) conditions.add("e.type =", "bytea"), parameters.bytes(*filter.type);
  if (filter.status) conditions.add("s.status =", "int2"), parameters.int2(static_cast<std::int64_t>(*filter.status));
  if (filter.parent) conditions.add("e.parent =", "uuid"), parameters.raw(*filter.parent);
  const std::string limit = conditions.next_parameter("int8");
  parameters.int8(std::max(filter.limit, 0));
  return fmt::format("SELECT {} FROM {} JOIN {} ON true{} ORDER BY {} DESC LIMIT {}", row_columns(true), source,
                     lookup("queues", "queue_no", "e.queue_no", "q"), conditions.sql(), id, limit);
}

}  // namespace

std::vector<std::optional<Execution>> find_all(Runner& runner, const std::string& name_space,
                                               std::span<const ExecutionId> ids) {
  return runner.read_aside([&](Workspace& workspace) {
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
    std::map<ExecutionId, const Execution*> by_id;
    for (const Row& row : read) by_id.emplace(row.execution.id, &row.execution);
    std::vector<std::optional<Execution>> found;
    for (const ExecutionId& id : ids) {
      const auto row = by_id.find(id);
      const bool is_there = row != by_id.end() && row->second->name_space == name_space;
      found.push_back(is_there ? std::optional(*row->second) : std::nullopt);
    }
    return found;
  });
}

std::vector<Execution> list(Runner& runner, const ListFilter& filter) {
  return runner.read_aside([&](Workspace& workspace) {
    Parameters parameters;
    const std::string sql = list_sql(filter, runner.queues().first_shelf(), parameters);
    workspace.connection().send_silently(kBound);
    workspace.connection().send(sql, parameters);
    workspace.now();
    const Rows rows = workspace.connection().receive();
    std::vector<Row> found(static_cast<std::size_t>(rows.size()));
    for (int i = 0; i < rows.size(); ++i) {
      Cells cells(rows, i);
      read_row(cells, found[static_cast<std::size_t>(i)]);
    }
    workspace.name(found);
    std::vector<Execution> executions;
    executions.reserve(found.size());
    for (Row& row : found) executions.push_back(std::move(row.execution));
    return executions;
  });
}

std::vector<QueueCount> count(Runner& runner) {
  return runner.read_aside([](Workspace& workspace) {
    workspace.connection().send_silently(kBound);
    workspace.connection().send(kCount);
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
    if (const Execution* owner = workspace.owner_of(*entry)) found.owner = *owner;
    found.live = workspace.is_live(*entry);
    found.expires_at = workspace.dies_at(*entry);
    return found;
  });
}

std::vector<std::optional<ExecutionId>> owners(Runner& runner, std::span<const OwnerQuery> queries) {
  std::vector<IdentityHash> hashes;
  std::vector<ExecutionId> ids;
  for (const OwnerQuery& query : queries) {
    hashes.push_back(query.hash);
    ids.push_back(query.submission);
  }
  return runner.read_aside([&](Workspace& workspace) {
    workspace.read_identities(hashes, ids);
    std::vector<std::optional<ExecutionId>> owners;
    for (const OwnerQuery& query : queries) {
      const LedgerEntry* entry = workspace.entry(query.hash);
      const bool is_owned = entry && workspace.owner_of(*entry) && !workspace.find(query.submission);
      owners.push_back(is_owned ? std::optional(entry->owner) : std::nullopt);
    }
    return owners;
  });
}

std::vector<Event> history(Runner& runner, const ExecutionId& run, std::int64_t after, std::int32_t limit) {
  return runner.read_aside([&](Workspace& workspace) {
    workspace.now();
    send_read_events(workspace.connection(), run, after, std::max(limit, 0));
    return receive_events(workspace.connection());
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
