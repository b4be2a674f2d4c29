// Workers that announced themselves.
#include "store/rules/workers.h"

#include <map>

#include "store/sqlite/verbs.h"

namespace hapax::sqlite {

namespace {

constexpr const char* kPut =
    "INSERT OR REPLACE INTO hapax_workers (name_space, name, last_seen_at, tasks, workflows, queues, types, sdk, "
    "version,"
    " host, pid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr const char* kForgetTooMany =
    "DELETE FROM hapax_workers WHERE name_space = ?1 AND name IN (SELECT name FROM hapax_workers"
    " INDEXED BY hapax_workers_seen WHERE name_space = ?1 ORDER BY last_seen_at DESC LIMIT -1 OFFSET ?2)";
constexpr const char* kWorkers =
    "SELECT name, last_seen_at, tasks, workflows, queues, types, sdk, version, host, pid FROM hapax_workers"
    " WHERE name_space = ? AND last_seen_at > ? ORDER BY name";
constexpr const char* kHeld =
    "SELECT worker, count(*) FROM (SELECT worker FROM hapax_executions INDEXED BY hapax_running WHERE status = 1"
    " AND queue_no IN (SELECT queue_no FROM hapax_queues WHERE name_space = ?) LIMIT ?) GROUP BY worker";
constexpr const char* kClaimers =
    "SELECT name, last_seen_at, tasks, workflows, queues, types, sdk, version, host, pid FROM hapax_workers"
    " INDEXED BY hapax_workers_seen WHERE name_space = ?1 AND last_seen_at > ?2"
    " AND CASE ?3 WHEN 0 THEN tasks ELSE workflows END AND instr(queues, ?4)"
    " ORDER BY types <> '' AND NOT instr(types, ?5), name LIMIT ?6";
constexpr const char* kForget =
    "DELETE FROM hapax_workers WHERE (name_space, name) IN"
    " (SELECT name_space, name FROM hapax_workers WHERE last_seen_at <= ? LIMIT ?)";

std::vector<WorkerInfo> read(Run& run, const std::string& name_space) {
  std::vector<WorkerInfo> workers;
  while (run.next()) {
    WorkerInfo& worker = workers.emplace_back();
    worker.name_space = name_space;
    worker.name = run.text(0);
    worker.last_seen_at = run.time(1);
    worker.tasks = run.int32(2) != 0;
    worker.workflows = run.int32(3) != 0;
    worker.queues = rules::split_names(run.text(4));
    worker.types = rules::split_names(run.text(5));
    worker.origin.sdk = run.text(6);
    worker.origin.version = run.text(7);
    worker.origin.host = run.text(8);
    worker.origin.pid = run.int64(9);
  }
  return workers;
}

std::map<std::string, std::int64_t, std::less<>> held_in(Tables& tables, const std::string& name_space) {
  Statement statement(tables.connection(), kHeld);
  Run run(statement);
  run.bind(name_space).bind(rules::kMostHeld);
  std::map<std::string, std::int64_t, std::less<>> held;
  while (run.next()) held.emplace(run.text(0), run.int64(1));
  return held;
}

}  // namespace

void announce(Tables& tables, std::span<const WorkerInfo> workers) {
  Statement put(tables.connection(), kPut), forget(tables.connection(), kForgetTooMany);
  std::set<std::string> name_spaces;
  for (const WorkerInfo& worker : workers) {
    const std::string queues = rules::join_names(worker.queues), types = rules::join_names(worker.types);
    Run run(put);
    run.bind(worker.name_space).bind(worker.name).bind(worker.last_seen_at);
    run.bind(std::int32_t{worker.tasks}).bind(std::int32_t{worker.workflows}).bind(queues).bind(types);
    run.bind(worker.origin.sdk).bind(worker.origin.version).bind(worker.origin.host).bind(worker.origin.pid).done();
    name_spaces.insert(worker.name_space);
  }
  for (const std::string& name_space : name_spaces) {
    Run run(forget);
    run.bind(name_space).bind(rules::kMostWorkers).done();
  }
}

std::vector<WorkerInfo> workers(Tables& tables, const std::string& name_space, Time now) {
  Statement statement(tables.connection(), kWorkers);
  Run run(statement);
  run.bind(name_space).bind(now - rules::kWorkerMemory);
  std::vector<WorkerInfo> workers = read(run, name_space);
  const auto held = held_in(tables, name_space);
  for (WorkerInfo& worker : workers) {
    const auto count = held.find(worker.name);
    if (count != held.end()) worker.running = count->second;
  }
  return workers;
}

std::vector<WorkerInfo> claimers(Tables& tables, const Execution& pending, Time since, std::int32_t limit) {
  const std::string queue = rules::within_names(pending.queue), type = rules::within_names(pending.type);
  Statement statement(tables.connection(), kClaimers);
  Run run(statement);
  run.bind(pending.name_space).bind(since).bind(pending.kind).bind(queue).bind(type).bind(limit);
  return read(run, pending.name_space);
}

std::int64_t forget_workers(Tables& tables, Time now, std::int32_t limit) {
  Statement statement(tables.connection(), kForget);
  Run run(statement);
  return run.bind(now - rules::kWorkerMemory).bind(limit).done();
}

}  // namespace hapax::sqlite
