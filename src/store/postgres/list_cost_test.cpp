// A list costs what its own namespace has: shown by counting the rows that PostgreSQL reads, not by a clock.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "store/postgres/postgres_store.h"
#include "support/describe.h"
#include "support/postgres_server.h"
#include "support/task.h"

namespace hapax {
namespace {

class PostgresListCost : public testing::Test {
 protected:
  ~PostgresListCost() override { server_.drop_database(url_); }

  std::unique_ptr<Store> open() const {
    PostgresOptions options;
    options.url = url_;
    return open_postgres_store(options);
  }

  // One of the namespace's tasks runs, and some wait.
  void submit_and_claim_one(const std::string& name_space) {
    const auto store = open();
    for (int i = 0; i < 10; ++i) {
      const Submission task = Task().name_space(name_space).queue("work");
      store->submit({&task, 1});
    }
    ClaimRequest request;
    request.name_space = name_space;
    request.queues = {"work"};
    request.limit = 1;
    request.secret = test_secret(1);
    ASSERT_EQ(store->claim({&request, 1}).at(0).executions.size(), 1u);
  }

  // As many more as the one that runs.
  void run_more(const std::string& name_space, int count) {
    server_.run(url_, fmt::format(R"sql(
      SET search_path TO hapax;
      CREATE TEMP TABLE first AS
        SELECT id FROM open JOIN queues USING (queue_no) WHERE status = 1 AND name_space = '{}' LIMIT 1;
      CREATE TEMP TABLE more AS SELECT gen_random_uuid() AS id FROM generate_series(1, {});
      INSERT INTO executions SELECT (r).* FROM (
        SELECT jsonb_populate_record(e, jsonb_build_object('id', more.id)) AS r
        FROM executions e JOIN first ON first.id = e.id, more OFFSET 0) t;
      INSERT INTO open SELECT (r).* FROM (
        SELECT jsonb_populate_record(o, jsonb_build_object('id', more.id)) AS r
        FROM open o JOIN first ON first.id = o.id, more OFFSET 0) t)sql",
                                  name_space, count));
    server_.run(url_, "VACUUM ANALYZE hapax.open, hapax.executions");
  }

  // Rows and index entries, of the tables that lists read. A connection reports them at the latest as it ends.
  std::int64_t rows_read() {
    while (server_.run(url_,
                       "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                       " AND backend_type = 'client backend'") != "1") {
      std::this_thread::yield();
    }
    return std::stoll(server_.run(url_,
                                  "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"
                                  " + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)"));
  }

  template <class Read>
  std::int64_t rows_of(Read read) {
    open();  // what opening reads is the same for every count
    const std::int64_t before = rows_read();
    read(*open());
    return rows_read() - before;
  }

  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
};

TEST_F(PostgresListCost, OfWhatRunsDoesNotGrowWithWhatRunsInOtherNamespaces) {
  submit_and_claim_one("mine");
  submit_and_claim_one("theirs");
  ListFilter filter;
  filter.name_space = "mine";
  filter.status = Status::running;
  const auto list = [&](Store& store) { EXPECT_EQ(store.list(filter).size(), 1u); };
  const auto count = [](Store& store) { EXPECT_EQ(store.count("mine").at(0).running, 1); };
  run_more("theirs", 20'000);
  const std::int64_t listed = rows_of(list), counted = rows_of(count);
  run_more("theirs", 40'000);
  EXPECT_LE(rows_of(list), listed + 100);
  EXPECT_LE(rows_of(count), counted + 100);
}

TEST_F(PostgresListCost, ManyOfOnesOwnThatRunAreAllFound) {
  submit_and_claim_one("mine");
  run_more("mine", 6'000);  // more than are looked through at once
  EXPECT_EQ(open()->count("mine").at(0).running, 6'001);
  ListFilter filter;
  filter.name_space = "mine";
  filter.status = Status::running;
  filter.limit = 10;
  EXPECT_EQ(open()->list(filter).size(), 10u);
}

}  // namespace
}  // namespace hapax
