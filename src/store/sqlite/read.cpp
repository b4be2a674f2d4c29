#include <fmt/format.h>

#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

std::vector<QueueCount> count(Tables& tables, const std::optional<std::string>& name_space) {
  const char* const within =
      name_space ? "AND queue_no IN (SELECT queue_no FROM hapax_queues WHERE name_space = ?1)" : "";
  Statement statement(tables.connection(), fmt::format(R"sql(
SELECT q.name_space, q.queue, coalesce(sum(pending), 0), coalesce(sum(running), 0), min(oldest)
FROM hapax_queues q LEFT JOIN (
  SELECT queue_no, count(*) AS pending, 0 AS running, min(run_at) AS oldest
  FROM hapax_executions INDEXED BY hapax_ready WHERE status = 0 AND parked = 0 {0} GROUP BY queue_no
  UNION ALL
  SELECT queue_no, count(*), 0, min(run_at) FROM hapax_executions INDEXED BY hapax_parked WHERE parked = 1 {0} GROUP BY queue_no
  UNION ALL
  SELECT queue_no, 0, count(*), NULL FROM hapax_executions INDEXED BY hapax_running WHERE status = 1 {0} GROUP BY queue_no
) USING (queue_no) {1} GROUP BY q.name_space, q.queue ORDER BY q.name_space, q.queue)sql",
                                                       within, name_space ? "WHERE q.name_space = ?1" : ""));
  std::vector<QueueCount> counts;
  Run run(statement);
  if (name_space) run.bind(*name_space);
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
  if (owner) {
    require_sound(*owner);
    found.owner = std::move(held->owner->execution);
  }
  return found;
}

std::vector<SettingDocument> settings(Tables& tables) {
  Statement statement(tables.connection(),
                      "SELECT name_space, kind, name, document FROM hapax_settings ORDER BY name_space, kind, name");
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
  Statement statement(
      batch.tables.connection(),
      "INSERT OR REPLACE INTO hapax_checks (only_one, checked_at, filling) VALUES (1, ?, zeroblob(65536))");
  Run run(statement);
  run.bind(batch.now).done();
}

void put_setting(Tables& tables, const SettingDocument& setting) {
  Statement statement(tables.connection(),
                      "INSERT OR REPLACE INTO hapax_settings (name_space, kind, name, document)"
                      " VALUES (?, ?, ?, ?)");
  Run run(statement);
  run.bind(setting.name_space).bind(static_cast<std::int32_t>(setting.kind)).bind(setting.name).bind(setting.document);
  run.done();
}

}  // namespace hapax::sqlite

namespace hapax {

StampsAhead find_stamps_ahead(const std::string& path, Time now) {
  using namespace sqlite;
  Connection connection({.path = path, .busy_timeout = kStoreTimeout});
  if (schema_version(connection) == 0) return {};
  Statement statement(connection,
                      "SELECT count(*), max(stamp) FROM ("
                      "SELECT created_at AS stamp FROM hapax_executions"
                      " WHERE seq > (SELECT max(seq) FROM hapax_executions) - 1000"
                      " UNION ALL SELECT started_at FROM hapax_executions INDEXED BY hapax_running WHERE status = 1)"
                      " WHERE stamp > ?");
  Run run(statement);
  if (!run.bind(now).next() || run.int64(0) == 0) return {};
  return {run.int64(0), run.time(1)};
}

}  // namespace hapax
