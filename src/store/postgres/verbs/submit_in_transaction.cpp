#include <fmt/format.h>

#include "store/postgres/connection/url.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/run_rows.h"
#include "store/postgres/tables/schema.h"
#include "store/postgres/verbs/verbs.h"
#include "store/postgres/watch.h"

namespace hapax {

namespace {

using namespace postgres;

const Statement kEnter{"", "SELECT current_setting('search_path'), set_config('search_path', $1::text, true)"};
const Statement kLeave{"", "SELECT set_config('search_path', $1::text, true)"};
const Statement kIsThere{"", "SELECT to_regclass('schema_versions') IS NOT NULL"};
const Statement kVersion{"", "SELECT max(version) FROM schema_versions"};

bool has_schema(Connection& connection) {
  const Rows is_there = connection.run(kIsThere);
  if (!Cells(is_there, 0).boolean()) return false;
  const Rows version = connection.run(kVersion);
  return Cells(version, 0).integer() == newest_schema_version();
}

void check_usable(PGconn* handle) {
  if (PQpipelineStatus(handle) != PQ_PIPELINE_OFF || PQisnonblocking(handle)) {
    throw Failure(Failure::Code::misuse, "the connection is in pipeline or non-blocking mode: leave it first");
  }
  if (PQtransactionStatus(handle) != PQTRANS_INTRANS) {
    throw Failure(Failure::Code::misuse, "no transaction is open on this connection: BEGIN one first");
  }
}

// The caller's transaction, with Hapax's schema to the fore until it is dropped; what was done since is undone unless
// kept.
class Visit {
 public:
  Visit(PGconn* handle, const std::string& schema) : connection_(handle, schema) {
    run("SAVEPOINT hapax_submit");
    const Rows rows = connection_.run(kEnter, Parameters().bytes(schema));
    search_path_ = Cells(rows, 0).text();
  }
  ~Visit() {
    if (!kept_)
      PQclear(PQexec(connection_.handle(), "ROLLBACK TO SAVEPOINT hapax_submit; RELEASE SAVEPOINT hapax_submit"));
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  Connection& connection() { return connection_; }

  void keep() {
    connection_.run(kLeave, Parameters().bytes(search_path_));
    run("RELEASE SAVEPOINT hapax_submit");
    kept_ = true;
  }

 private:
  void run(const char* sql) {
    connection_.send(std::string(sql));
    connection_.receive();
  }

  Connection connection_;
  std::string search_path_;
  bool kept_ = false;
};

SubmitOutcome submit_within(Visit& visit, const std::string& schema, const Submission& submission,
                            const QueuePolicies& policies) {
  Connection& connection = visit.connection();
  if (!has_schema(connection)) {
    throw Failure(
        Failure::Code::misuse,
        fmt::format("the connection's database has no Hapax schema {} of this version: use a connection to the"
                    " database that the app has open",
                    schema));
  }
  QueueNumbers queues;
  Workspace workspace(connection, queues, policies, nullptr);
  SubmitOutcome outcome = PostgresRows(workspace).submit(submission);
  workspace.write();
  connection.run(notification(), Parameters().bytes(""));
  return outcome;
}

}  // namespace

SubmitOutcome submit_in_transaction(pg_conn* handle, const std::string& url, const Submission& submission,
                                    const QueuePolicies& policies) {
  check_usable(handle);
  const std::string schema = parse_url(url).schema;
  try {
    Visit visit(handle, schema);
    SubmitOutcome outcome = submit_within(visit, schema, submission, policies);
    visit.keep();
    return outcome;
  } catch (const Refused& refused) {
    throw refused.as_failure();
  } catch (const Lost& lost) {
    throw lost.as_failure();
  }
}

}  // namespace hapax
