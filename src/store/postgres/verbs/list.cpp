// Lists stay within their namespace: each of its queues is walked by an index that begins with the queue, newest first.
// The ids come first, with what each weighs; then those that fit on the page are read.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "store/postgres/verbs/verbs.h"

namespace hapax::postgres {

namespace {

// As many open executions of one status are looked through at once. Of more, the newest are looked for in order.
constexpr std::int64_t kFewOpen = 5000;

// What runs anywhere, and what a namespace has in all: each counted up to one more than the bound.
const Statement kAtMost{"at_most", R"sql(
SELECT (SELECT count(*) FROM (SELECT FROM open WHERE status = 1 LIMIT $2::int8 + 1) r),
       (SELECT count(*) FROM (SELECT FROM (SELECT queue_no FROM queues WHERE name_space = $1::bytea OFFSET 0) own,
         LATERAL (SELECT FROM executions e WHERE e.queue_no = own.queue_no LIMIT $2::int8 + 1) p
         LIMIT $2::int8 + 1) m))sql"};

struct Listed {
  ExecutionId id;
  std::int64_t bytes = 0;
};

// A query for ids, and its parameters.
class Query {
 public:
  explicit Query(const ListFilter& filter) : filter_(filter) {
    const std::string name_space = next("bytea"), kind = next("int2");
    parameters_.bytes(filter.name_space).int2(static_cast<std::int64_t>(filter.kind));
    own_ = fmt::format("SELECT queue_no FROM queues WHERE name_space = {} AND kind = {}", name_space, kind);
    if (filter.queue) own_ += " AND queue = " + next("bytea"), parameters_.bytes(*filter.queue);
    before_ = next("uuid");
    ExecutionId last;
    last.bytes.fill(0xff);
    parameters_.raw(filter.before.value_or(last));
    limit_ = next("int8");
    parameters_.int8(std::int64_t{filter.limit} + 1);
  }

  // The rows of `table` in each of the namespace's queues, in the order of an index on (queue_no, id). Asked for as a
  // range of both, so that no index on the id alone can serve.
  std::string by_queue(const std::string& table, const std::string& state, const std::string& conditions) {
    return fmt::format(
        "SELECT p.id FROM own, LATERAL (SELECT e.id FROM {0} e{1}"
        " WHERE (e.queue_no, e.id) >= (own.queue_no, '00000000-0000-0000-0000-000000000000'::uuid)"
        " AND (e.queue_no, e.id) < (own.queue_no, {2}){3} ORDER BY e.queue_no DESC, e.id DESC LIMIT {4}) p",
        table, state, before_, conditions, limit_);
  }

  std::string every() { return by_queue("executions", state_join(), type() + status("s")); }

  std::string unsuccessful() { return by_queue("closed", "", " AND e.status > 3" + status("e") + open_type()); }
  std::string suspended() { return by_queue("open", "", status("e") + open_type()); }

  // By the index of everything that runs.
  std::string running() {
    return "SELECT e.id FROM open e WHERE e.status = 1 AND e.queue_no = ANY(ARRAY(SELECT queue_no FROM own))"
           " AND e.id < " +
           before_ + open_type();
  }

  // Of pending ones, not more than kFewOpen.
  std::string few() {
    const std::string rest = fmt::format(" AND e.id < {}{} LIMIT {}", before_, open_type(), kFewOpen + 1);
    return fmt::format(
        "SELECT p.id FROM own, LATERAL ((SELECT e.id FROM open e WHERE e.status = 0 AND NOT e.parked"
        " AND e.queue_no = own.queue_no{0}) UNION ALL (SELECT e.id FROM open e WHERE e.parked"
        " AND e.queue_no = own.queue_no{0})) p LIMIT {1}",
        rest, kFewOpen + 1);
  }

  std::string by_key(std::int32_t first_shelf) {
    const std::string shelf = next("int4"), number = next("int4"), key = next("bytea");
    parameters_.int4(first_shelf).int4(key_number(*filter_.idempotency_key)).bytes(*filter_.idempotency_key);
    return fmt::format("SELECT e.id FROM {}{} WHERE e.id < {}{}{}{} ORDER BY e.id DESC LIMIT {}",
                       lookup_key(shelf, number, key, "e", "ARRAY(SELECT queue_no FROM own)"), state_join(), before_,
                       type(), status("s"), parent(), limit_);
  }

  // The steps of a run of another namespace are not even counted.
  std::string by_parent() {
    std::string steps = parent();
    return fmt::format(
        "SELECT e.id FROM executions e{0} WHERE e.queue_no = ANY(ARRAY(SELECT queue_no FROM own)) AND e.id < "
        "{1}{2}{3}{4}"
        " AND NOT EXISTS (SELECT FROM executions r JOIN queues q ON q.queue_no = r.queue_no"
        " WHERE r.id = {5} AND q.name_space <> $1::bytea) ORDER BY e.id DESC LIMIT {6}",
        state_join(), before_, steps, type(), status("s"), parent_, limit_);
  }

  // What each of these weighs, newest first.
  std::string weighed(const std::string& ids) {
    return fmt::format(
        "WITH own AS MATERIALIZED ({0}) SELECT f.id, {5}"
        " FROM (SELECT i.id FROM ({1}) i ORDER BY i.id DESC LIMIT {2}) f JOIN {3} ON true JOIN {4} ON true"
        " ORDER BY f.id DESC",
        own_, ids, limit_, lookup("executions", "id", "f.id", "e"), lookup_state(), payload_bytes());
  }
  std::string count_of(const std::string& ids) {
    return fmt::format("WITH own AS MATERIALIZED ({}) SELECT count(*), {} FROM ({}) i", own_, limit_, ids);
  }

  const Parameters& parameters() const { return parameters_; }

 private:
  std::string next(const char* type) { return fmt::format("${}::{}", ++count_, type); }

  std::string state_join() const { return filter_.status ? " JOIN " + lookup_state() + " ON true" : ""; }
  std::string status(const char* alias) const {
    return filter_.status ? fmt::format(" AND {}.status = {}", alias, static_cast<int>(*filter_.status)) : "";
  }
  std::string type() {
    if (!filter_.type) return "";
    parameters_.bytes(*filter_.type);
    return " AND e.type = " + next("bytea");
  }
  // The type of a row of `open` or `closed` is with its facts.
  std::string open_type() {
    if (!filter_.type) return "";
    parameters_.bytes(*filter_.type);
    return " AND (SELECT x.type FROM executions x WHERE x.id = e.id) = " + next("bytea");
  }
  std::string parent() {
    if (!filter_.parent) return "";
    parameters_.raw(*filter_.parent);
    parent_ = next("uuid");
    return " AND e.parent = " + parent_;
  }

  const ListFilter& filter_;
  Parameters parameters_;
  int count_ = 0;
  std::string own_, before_, limit_, parent_;
};

std::vector<Listed> run(Workspace& workspace, Query& query, const std::string& ids) {
  const std::string sql = query.weighed(ids);
  workspace.connection().send(sql, query.parameters());
  workspace.now();  // was asked for first
  const Rows rows = workspace.connection().receive();
  std::vector<Listed> listed;
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto id = cells.raw<ExecutionId>();
    listed.push_back({id, cells.integer()});
  }
  return listed;
}

bool are_few(Workspace& workspace, const ListFilter& filter) {
  Query query(filter);
  const std::string sql = query.count_of(query.few());
  workspace.connection().send(sql, query.parameters());
  workspace.now();  // was asked for first
  const Rows rows = workspace.connection().receive();
  return Cells(rows, 0).integer() <= kFewOpen;
}

std::vector<Listed> find(Workspace& workspace, const ListFilter& filter, std::int32_t first_shelf) {
  Query query(filter);
  if (filter.idempotency_key) return run(workspace, query, query.by_key(first_shelf));
  if (filter.parent) return run(workspace, query, query.by_parent());
  if (!filter.status || *filter.status == Status::completed) return run(workspace, query, query.every());
  if (is_closed(*filter.status)) return run(workspace, query, query.unsuccessful());
  if (filter.status == Status::suspended) return run(workspace, query, query.suspended());
  const bool shorter = filter.status == Status::running ? fewer_run_than_are_stored(workspace, filter.name_space)
                                                        : are_few(workspace, filter);
  if (!shorter) return run(workspace, query, query.every());
  return run(workspace, query, filter.status == Status::running ? query.running() : query.few());
}

}  // namespace

bool fewer_run_than_are_stored(Workspace& workspace, const std::string& name_space) {
  for (std::int64_t bound = kFewOpen;; bound *= 2) {
    workspace.connection().send(kAtMost, Parameters().bytes(name_space).int8(bound));
    workspace.now();  // was asked for first
    const Rows rows = workspace.connection().receive();
    Cells cells(rows, 0);
    if (cells.integer() <= bound) return true;
    if (cells.integer() <= bound) return false;
  }
}

Page list(Runner& runner, const ListFilter& filter) {
  if (filter.limit <= 0) return {};
  return runner.read_aside([&](Workspace& workspace) {
    const std::vector<Listed> found = find(workspace, filter, runner.queues().first_shelf());
    PageBudget budget;
    std::vector<ExecutionId> ids;
    for (const Listed& listed : found) {
      if (std::ssize(ids) == filter.limit || !budget.take(listed.bytes)) break;
      ids.push_back(listed.id);
    }
    Page page;
    if (ids.empty()) return workspace.now(), page;
    if (ids.size() < found.size()) page.next = ids.back();
    std::vector<Row> rows = read_whole(workspace, ids);
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return b.execution.id < a.execution.id; });
    for (Row& row : rows) {
      // It may have changed since it was found.
      if (filter.status && row.execution.status != *filter.status) continue;
      if (row.execution.damaged) {
        page.damaged.push_back({row.execution.id, describe_damage(row.execution.id)});
      } else {
        page.push_back(std::move(row.execution));
      }
    }
    return page;
  });
}

}  // namespace hapax::postgres
