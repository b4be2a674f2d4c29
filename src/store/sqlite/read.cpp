#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

// The narrowest index there is for the filter; the rest is checked row by row.
std::string list_sql(const ListFilter& filter) {
  const bool unsuccessful = filter.status && is_closed(*filter.status) && *filter.status != Status::completed;
  const char* index = filter.idempotency_key             ? "keys"
                      : filter.parent                    ? "steps"
                      : filter.status == Status::running ? "running"
                      : unsuccessful                     ? "unsuccessful"
                                                         : "execution_ids";
  std::string sql = fmt::format(
      "SELECT {} FROM executions e INDEXED BY {} JOIN queues q ON q.queue_no = e.queue_no"
      " WHERE q.name_space = ?1 AND e.kind = ?2",
      kAllColumns, index);
  if (filter.before) sql += " AND e.id < ?3";
  if (filter.queue) sql += " AND q.queue = ?4";
  if (filter.type) sql += " AND e.type = ?5";
  if (filter.idempotency_key) sql += " AND e.key_hash = ?6 AND e.idempotency_key = ?7";
  // Written out, so that SQLite sees that the partial index has them all.
  if (filter.status) sql += fmt::format(" AND e.status = {}", static_cast<int>(*filter.status));
  if (filter.parent) sql += " AND e.parent = ?9";
  return sql + " ORDER BY e.id DESC LIMIT ?10";
}

}  // namespace

std::vector<Execution> list(Tables& tables, const ListFilter& filter) {
  std::vector<Row> rows;
  {
    Statement statement(tables.connection(), list_sql(filter));
    Run run(statement);
    run.bind(filter.name_space).bind(filter.kind).bind(filter.before).bind(filter.queue).bind(filter.type);
    run.bind(filter.idempotency_key ? std::optional(key_hash(*filter.idempotency_key)) : std::nullopt);
    run.bind(filter.idempotency_key).bind(filter.status).bind(filter.parent).bind(std::max(filter.limit, 0));
    while (run.next()) read_all(run, rows.emplace_back());
  }
  std::vector<Execution> found;
  found.reserve(rows.size());
  for (Row& row : rows) {
    tables.complete(row);
    found.push_back(std::move(row.execution));
  }
  return found;
}

std::vector<QueueCount> count(Tables& tables) {
  Statement statement(tables.connection(), R"sql(
SELECT q.name_space, q.queue, sum(pending), sum(running), min(oldest) FROM (
  SELECT queue_no, count(*) AS pending, 0 AS running, min(run_at) AS oldest
  FROM executions INDEXED BY ready WHERE status = 0 AND parked = 0 GROUP BY queue_no
  UNION ALL
  SELECT queue_no, count(*), 0, min(run_at) FROM executions INDEXED BY parked WHERE parked = 1 GROUP BY queue_no
  UNION ALL
  SELECT queue_no, 0, count(*), NULL FROM executions INDEXED BY running WHERE status = 1 GROUP BY queue_no
) JOIN queues q USING (queue_no) GROUP BY q.name_space, q.queue ORDER BY q.name_space, q.queue)sql");
  std::vector<QueueCount> counts;
  Run run(statement);
  while (run.next()) {
    counts.push_back({.name_space = std::string(run.text(0)),
                      .queue = std::string(run.text(1)),
                      .pending = run.int64(2),
                      .running = run.int64(3),
                      .oldest_run_at = run.time_if(4)});
  }
  return counts;
}

std::optional<FoundIdentity> find_identity(Tables& tables, const QueuePolicies& policies, const IdentityHash& hash,
                                           Time now) {
  auto held = tables.find_identity(hash);
  if (!held) return std::nullopt;
  const Execution* owner = held->owner ? &held->owner->execution : nullptr;
  const Duration retention = retention_of_owner(policies, *held);
  FoundIdentity found;
  found.live = is_live(held->entry, owner, retention, now);
  found.expires_at = dies_at(held->entry, owner, retention);
  found.entry = std::move(held->entry);
  if (owner) found.owner = std::move(held->owner->execution);
  return found;
}

std::vector<SettingDocument> settings(Tables& tables) {
  Statement statement(tables.connection(),
                      "SELECT name_space, kind, name, document FROM settings ORDER BY name_space, kind, name");
  std::vector<SettingDocument> all;
  Run run(statement);
  while (run.next()) {
    all.push_back({.name_space = std::string(run.text(0)),
                   .kind = static_cast<SettingDocument::Kind>(run.int32(1)),
                   .name = std::string(run.text(2)),
                   .document = std::string(run.text(3))});
  }
  return all;
}

void write_check(Batch& batch) {
  Statement statement(batch.tables.connection(), "INSERT OR REPLACE INTO checks (only_one, checked_at) VALUES (1, ?)");
  Run run(statement);
  run.bind(batch.now).done();
}

void put_setting(Tables& tables, const SettingDocument& setting) {
  Statement statement(tables.connection(),
                      "INSERT OR REPLACE INTO settings (name_space, kind, name, document)"
                      " VALUES (?, ?, ?, ?)");
  Run run(statement);
  run.bind(setting.name_space).bind(static_cast<std::int32_t>(setting.kind)).bind(setting.name).bind(setting.document);
  run.done();
}

}  // namespace hapax::sqlite
