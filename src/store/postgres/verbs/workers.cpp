// Workers that announced themselves.
#include "store/rules/workers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

namespace {

const Statement kPut{
    "put_workers",
    "INSERT INTO workers (name_space, name, last_seen_at, tasks, workflows, queues, types, sdk, version,"
    " host, pid) SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::bool[], $5::bool[],"
    " $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::int8[])"
    " ON CONFLICT (name_space, name) DO UPDATE SET last_seen_at = excluded.last_seen_at,"
    " tasks = excluded.tasks, workflows = excluded.workflows, queues = excluded.queues,"
    " types = excluded.types, sdk = excluded.sdk, version = excluded.version, host = excluded.host,"
    " pid = excluded.pid"};
const Statement kForgetTooMany{
    "forget_too_many_workers",
    "DELETE FROM workers w USING (SELECT DISTINCT g.name_space FROM unnest($1::bytea[]) AS g (name_space)) s,"
    " LATERAL (SELECT x.name FROM workers x WHERE x.name_space = s.name_space ORDER BY x.last_seen_at DESC"
    " OFFSET $2::int8) o WHERE w.name_space = s.name_space AND w.name = o.name"};
const std::string kColumns =
    "w.name, w.last_seen_at, w.tasks, w.workflows, w.queues, w.types, w.sdk, w.version, w.host, w.pid";
const Statement kWorkers{"workers", "SELECT " + kColumns +
                                        " FROM workers w WHERE w.name_space = $1::bytea AND w.last_seen_at > $2::int8"
                                        " ORDER BY w.name"};
const Statement kHeld{"held_by_workers",
                      "SELECT h.worker, count(*) FROM (SELECT o.worker FROM open o WHERE o.status = 1 AND o.queue_no ="
                      " ANY(ARRAY(SELECT queue_no FROM queues WHERE name_space = $1::bytea)) LIMIT $2::int8) h"
                      " GROUP BY h.worker"};
const Statement kClaimers{
    "claimers",
    "SELECT " + kColumns +
        " FROM workers w WHERE w.name_space = $1::bytea AND w.last_seen_at > $2::int8"
        " AND CASE WHEN $3::bool THEN w.workflows ELSE w.tasks END AND position($4::bytea IN w.queues) > 0"
        " ORDER BY octet_length(w.types) > 0 AND position($5::bytea IN w.types) = 0, w.name LIMIT $6::int8"};
const Statement kForget{"forget_workers",
                        "WITH gone AS (DELETE FROM workers WHERE ctid = ANY(ARRAY(SELECT w.ctid FROM workers w"
                        " WHERE w.last_seen_at <= $1::int8 LIMIT $2::int8 FOR UPDATE SKIP LOCKED)) RETURNING 1)"
                        " SELECT count(*) FROM gone"};

// The last of each name, in an order that all who write them share.
std::vector<WorkerInfo> without_repetition(std::span<const WorkerInfo> workers) {
  std::map<std::pair<std::string, std::string>, WorkerInfo> last;
  for (const WorkerInfo& worker : workers) last.insert_or_assign({worker.name_space, worker.name}, worker);
  std::vector<WorkerInfo> all;
  for (auto& [name, worker] : last) all.push_back(std::move(worker));
  return all;
}

Parameters put_parameters(const std::vector<WorkerInfo>& workers) {
  Array name_space(Type::bytea), name(Type::bytea), seen(Type::int8), tasks(Type::boolean), workflows(Type::boolean),
      queues(Type::bytea), types(Type::bytea), sdk(Type::bytea), version(Type::bytea), host(Type::bytea),
      pid(Type::int8);
  for (const WorkerInfo& worker : workers) {
    name_space.bytes(worker.name_space);
    name.bytes(worker.name);
    seen.time(worker.last_seen_at);
    tasks.boolean(worker.tasks);
    workflows.boolean(worker.workflows);
    queues.bytes(rules::join_names(worker.queues));
    types.bytes(rules::join_names(worker.types));
    sdk.bytes(worker.origin.sdk);
    version.bytes(worker.origin.version);
    host.bytes(worker.origin.host);
    pid.integer(worker.origin.pid);
  }
  Parameters parameters;
  for (Array* array : {&name_space, &name, &seen, &tasks, &workflows, &queues, &types, &sdk, &version, &host, &pid}) {
    parameters.array(std::move(*array));
  }
  return parameters;
}

std::vector<WorkerInfo> read(const Rows& rows, const std::string& name_space) {
  std::vector<WorkerInfo> workers;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    WorkerInfo& worker = workers.emplace_back();
    worker.name_space = name_space;
    worker.name = cells.text();
    worker.last_seen_at = cells.time();
    worker.tasks = cells.boolean();
    worker.workflows = cells.boolean();
    worker.queues = rules::split_names(cells.text());
    worker.types = rules::split_names(cells.text());
    worker.origin.sdk = cells.text();
    worker.origin.version = cells.text();
    worker.origin.host = cells.text();
    worker.origin.pid = cells.integer();
  }
  return workers;
}

}  // namespace

void announce(Runner& runner, std::span<const WorkerInfo> announced) {
  const std::vector<WorkerInfo> workers = without_repetition(announced);
  if (workers.empty()) return;
  runner.run_at_once(kPut, put_parameters(workers));
  Array name_spaces(Type::bytea);
  for (const WorkerInfo& worker : workers) name_spaces.bytes(worker.name_space);
  Parameters parameters;
  parameters.array(std::move(name_spaces)).int8(rules::kMostWorkers);
  runner.run_at_once(kForgetTooMany, parameters);
}

std::vector<WorkerInfo> workers(Runner& runner, const std::string& name_space) {
  return runner.read_aside([&](Workspace& workspace) {
    const Time since = workspace.now() - rules::kWorkerMemory;
    const Rows rows = workspace.connection().run(kWorkers, Parameters().bytes(name_space).time(since));
    std::vector<WorkerInfo> workers = read(rows, name_space);
    const Rows counts = workspace.connection().run(kHeld, Parameters().bytes(name_space).int8(rules::kMostHeld));
    std::map<std::string, std::int64_t> held;
    for (int i = 0; i < counts.size(); ++i) {
      Cells cells(counts, i);
      const std::string worker = cells.text();
      held.emplace(worker, cells.integer());
    }
    for (WorkerInfo& worker : workers) worker.running = held[worker.name];
    return workers;
  });
}

std::vector<WorkerInfo> claimers(Connection& connection, const Execution& pending, Time since, std::int32_t limit) {
  Parameters parameters;
  parameters.bytes(pending.name_space).time(since).boolean(pending.kind == Kind::workflow);
  parameters.bytes(rules::within_names(pending.queue)).bytes(rules::within_names(pending.type)).int8(limit);
  return read(connection.run(kClaimers, parameters), pending.name_space);
}

std::int64_t forget_workers(Workspace& workspace, std::int32_t limit) {
  Parameters parameters;
  parameters.time(workspace.now() - rules::kWorkerMemory).int8(limit);
  const Rows rows = workspace.connection().run(kForget, parameters);
  return Cells(rows, 0).integer();
}

}  // namespace hapax::postgres
