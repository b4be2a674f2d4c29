#include "store/postgres/fast/complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "store/postgres/tables/sealed.h"

namespace hapax::postgres::fast {

namespace {

// What is added to columns keeps the planner from looking for them in an index: the row is known by its place.
std::string complete_sql(By by) {
  const std::map<std::string_view, std::string> closing{
      {"status", fmt::format("{}", static_cast<int>(Status::completed))},
      {"due_at", "NULL"},
      {"finished_at", "t.now"},
      {"cancel_by", "NULL"},
      {"lease_expires_at", "NULL"},
      {"attempt_ends_by", "NULL"},
      {"error_type", "NULL"},
      {"error_message", "NULL"},
      {"error_stack", "NULL"},
      {"error_details", "NULL"},
      {"result", "d.reported"},
  };
  std::string values;
  for (const Column& column : state_rows().columns) {
    const auto found = closing.find(column.name);
    values += fmt::format("{}{}", values.empty() ? "" : ", ",
                          found == closing.end() ? fmt::format("d.{}", column.name) : found->second);
  }
  return fmt::format(R"sql(
WITH t AS MATERIALIZED (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now),
done AS (
  DELETE FROM open o USING unnest($3::uuid[], $4::int4[], $5::bytea[], $6::bytea[], {3}
  WHERE {4} AND o.status + 0 = {0} AND o.attempt = g.attempt AND o.lease_secret = g.secret
    AND o.kind + 0 = 0 AND NOT o.has_parent AND NOT o.awaited AND o.concurrency_key IS NULL
    AND o.queue_no + 0 = ANY($2::int4[])
  RETURNING o.*, g.reported),
kept AS (INSERT INTO closed ({1}) SELECT {2} FROM done d, t)
SELECT t.now, d.id, d.queue_no FROM t LEFT JOIN done d ON true)sql",
                     static_cast<int>(Status::running), names(state_rows().columns), values,
                     by == By::location ? "$7::tid[]) AS g (id, attempt, secret, reported, location)"
                                        : "$7::bytea[]) AS g (id, attempt, secret, reported, name_space), " +
                                              lookup_place("open", "id", "g.id", "s"),
                     by == By::location ? "o.ctid = g.location AND (o.id = g.id) IS TRUE"
                                        : "o.ctid = s.place AND (g.name_space IS NULL OR g.name_space ="
                                          " (SELECT q.name_space FROM queues q WHERE q.queue_no = o.queue_no))");
}

const Statement kComplete{"complete", complete_sql(By::id)};
const Statement kCompleteAt{"complete_at", complete_sql(By::location)};

bool may_complete(const Report& report) {
  const bool has_run = is_step_id(report.token.execution);  // which is to be told
  return !has_run && std::holds_alternative<Report::Completed>(report.outcome);
}

}  // namespace

std::vector<std::size_t> complete(Runner& runner, By by, std::span<const Report> reports,
                                  const std::vector<std::size_t>& items, std::vector<FinishOutcome>& outcomes) {
  std::map<ExecutionId, std::size_t> tried;  // in the order in which all transactions lock executions
  std::map<ExecutionId, RowLocation> locations;
  std::vector<std::size_t> rest;
  std::set<ExecutionId> met;
  const std::string& name_space = reports[items.front()].name_space;
  for (const std::size_t i : items) {
    const ExecutionId& id = reports[i].token.execution;
    bool may_be_tried = met.insert(id).second && may_complete(reports[i]);
    if (may_be_tried && by == By::location) {
      const auto location = runner.locations().take(id);
      may_be_tried = location && reports[i].name_space == name_space;
      if (may_be_tried) locations.emplace(id, *location);
    }
    if (may_be_tried) {
      tried.emplace(id, i);
    } else {
      rest.push_back(i);
    }
  }
  if (tried.empty()) return rest;

  Array ids(Type::uuid), attempts(Type::int4), secrets(Type::bytea), results(Type::bytea);
  Array last(by == By::location ? Type::tid : Type::bytea);
  for (const auto& [id, i] : tried) {
    const Report& report = reports[i];
    ids.raw(id);
    attempts.integer(report.token.attempt);
    secrets.raw(report.token.secret);
    results.bytes_if(seal_json(std::get<Report::Completed>(report.outcome).result));
    if (by == By::location) {
      last.raw(locations.at(id));
    } else {
      report.name_space.empty() ? last.null() : last.bytes(report.name_space);
    }
  }
  Parameters parameters;
  parameters.int8_if(runner.now_parameter())
      .array(retained_queues(runner, Kind::task, by == By::location ? name_space : ""));
  parameters.array(std::move(ids)).array(std::move(attempts)).array(std::move(secrets)).array(std::move(results));
  parameters.array(std::move(last));
  const Rows rows = runner.run_at_once(by == By::location ? kCompleteAt : kComplete, parameters);
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    runner.note(cells.time());
    const auto id = cells.raw_if<ExecutionId>();
    if (!id) break;
    const auto found = tried.find(*id);
    FinishOutcome& outcome = outcomes[found->second];
    const QueueName name = runner.queues().name_of(static_cast<std::int32_t>(cells.integer()));
    outcome.accepted = true;
    outcome.status = Status::completed;
    outcome.name_space = name.name_space;
    outcome.queue = name.queue;
    tried.erase(found);
  }
  for (const auto& [id, i] : tried) rest.push_back(i);
  std::sort(rest.begin(), rest.end());
  return rest;
}

}  // namespace hapax::postgres::fast
