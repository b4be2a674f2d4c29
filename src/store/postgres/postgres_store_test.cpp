// What only a PostgreSQL store has: its schema, its connections, somebody else's transaction.
#include "store/postgres/postgres_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <libpq-fe.h>
#include <malloc.h>

#include <fstream>
#include <thread>

#include "store/postgres/connection/url.h"
#include "store/postgres/tables/rows.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/postgres_server.h"
#include "support/task.h"

namespace hapax {
namespace {

using postgres::parse_url;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PostgresOptions at(std::string url) {
  PostgresOptions options;
  options.url = std::move(url);
  return options;
}

std::string refusal(const PostgresOptions& options) {
  try {
    open_postgres_store(options);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::misuse);
    return failure.what();
  }
  return "";
}

std::vector<Execution> all_in(Store& store) {
  ListFilter filter;
  filter.name_space = "default";
  return store.list(filter);
}

class PostgresTest : public testing::Test {
 protected:
  ~PostgresTest() override { server_.drop_database(url_); }

  PostgresServer& server_ = PostgresServer::shared();
  const std::string url_ = server_.create_database();
};

using PostgresSchema = PostgresTest;

TEST_F(PostgresSchema, EightWhoOpenAnEmptyDatabaseAtOnceAllSucceed) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_NO_THROW(open_postgres_store(at(url_))); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_.run(url_, "SELECT count(*) = max(version) FROM hapax.schema_versions"), "t");
}

// Columns of one type could change places unnoticed.
TEST_F(PostgresSchema, HasTheRowsOfBatchesAsTheyAreSent) {
  open_postgres_store(at(url_));
  for (const postgres::RowType* type :
       {&postgres::fact_rows(), &postgres::submission_rows(), &postgres::started_submission_rows(),
        &postgres::state_rows(), &postgres::start_rows(), &postgres::event_rows(), &postgres::turn_rows(),
        &postgres::done_step_rows()}) {
    std::string sent;
    for (const postgres::Column& column : type->columns) {
      sent += fmt::format("{}{} {}", sent.empty() ? "" : ", ", column.name, static_cast<int>(column.type));
    }
    EXPECT_EQ(server_.run(url_, fmt::format("SELECT string_agg(attname || ' ' || atttypid::oid, ', ' ORDER BY attnum)"
                                            " FROM pg_attribute WHERE attrelid = 'hapax.{}'::regclass",
                                            type->name)),
              sent);
  }
}

using PostgresKeys = PostgresTest;

TEST_F(PostgresKeys, AreFoundOnEveryShelf) {
  for (int shelf = 0; shelf < 3; ++shelf) {
    const std::vector<Submission> submissions{Task("t" + std::to_string(shelf)).key("k"),
                                              Task().key("other " + std::to_string(shelf)), Task()};
    open_postgres_store(at(url_))->submit(submissions);
    // As if a shelf had been filled meanwhile.
    server_.run(url_, fmt::format("SELECT setval('hapax.keyed', {})", (shelf + 1) << postgres::kShelfBits));
  }
  const auto store = open_postgres_store(at(url_));
  EXPECT_EQ(server_.run(url_, "SELECT count(DISTINCT key_shelf) FROM hapax.executions WHERE key_hash IS NOT NULL"),
            "3");
  ListFilter filter;
  filter.name_space = "default";
  filter.idempotency_key = "k";
  std::vector<std::string> types;
  for (const Execution& execution : store->list(filter)) types.push_back(execution.type);
  EXPECT_THAT(types, testing::UnorderedElementsAre("t0", "t1", "t2"));
  store->purge(100);  // learns where the first shelf is
  EXPECT_THAT(store->list(filter), SizeIs(3));
  filter.type = "t1";
  EXPECT_THAT(store->list(filter), SizeIs(1));
  filter.idempotency_key = "nobody's";
  EXPECT_THAT(store->list(filter), IsEmpty());
}

TEST_F(PostgresSchema, NewerOneIsRefusedWithWhatToDo) {
  open_postgres_store(at(url_));
  server_.run(url_, "INSERT INTO hapax.schema_versions VALUES (99, now())");
  EXPECT_THAT(refusal(at(url_)), HasSubstr("use a newer hapax"));
}

TEST_F(PostgresSchema, MissingOneIsRefusedWhereNoneMayBeCreated) {
  PostgresOptions options = at(url_);
  options.create = false;
  EXPECT_THAT(refusal(options), HasSubstr("hapax migrate"));
}

TEST_F(PostgresSchema, TablesOfSomebodyElseAreLeftAlone) {
  server_.run(url_, "CREATE SCHEMA other; CREATE TABLE other.executions (id int)");
  EXPECT_THAT(refusal(at(url_ + "?hapax_schema=other")), HasSubstr("hapax_schema"));
}

TEST_F(PostgresSchema, TwoSchemasOfOneDatabaseAreTwoStores) {
  const auto first = open_postgres_store(at(url_));
  const auto second = open_postgres_store(at(url_ + "?hapax_schema=second"));
  const Submission task = Task();
  first->submit({&task, 1});
  EXPECT_THAT(all_in(*first), SizeIs(1));
  EXPECT_THAT(all_in(*second), IsEmpty());
}

TEST(PostgresUrl, AddsThatOnlyAServerThatTakesWritesWillDo) {
  EXPECT_THAT(parse_url("postgres://u@a,b/d").hosts, Each(HasSubstr("target_session_attrs='read-write'")));
  EXPECT_THAT(parse_url("postgres://u@a/d?target_session_attrs=any").hosts,
              ElementsAre(HasSubstr("target_session_attrs='any'")));
}

TEST(PostgresUrl, TakesItsHostsApart) {
  EXPECT_THAT(parse_url("postgres://u@a:1,b:2/d").hosts,
              ElementsAre(AllOf(HasSubstr("host='a'"), HasSubstr("port='1'")),
                          AllOf(HasSubstr("host='b'"), HasSubstr("port='2'"))));
  EXPECT_THAT(parse_url("postgres:///d?host=/x,/y&port=5").hosts,
              ElementsAre(AllOf(HasSubstr("host='/x'"), HasSubstr("port='5'")),
                          AllOf(HasSubstr("host='/y'"), HasSubstr("port='5'"))));
  EXPECT_THAT(parse_url("postgres:///d").hosts, SizeIs(1));
  EXPECT_THROW(parse_url("postgres://u@/d?host=a,b,c&port=1,2"), Failure);
}

TEST(PostgresUrl, TakesTheTimeToConnectFromTheQuery) {
  EXPECT_EQ(parse_url("postgres://h/d").connect_timeout, Duration(10'000));
  EXPECT_EQ(parse_url("postgres://h/d?connect_timeout=3").connect_timeout, Duration(3'000));
  EXPECT_THROW(parse_url("postgres://h/d?connect_timeout=soon"), Failure);
}

TEST(PostgresUrl, TakesItsOwnOptionsOutOfTheQuery) {
  const auto url = parse_url("postgresql://h/d?hapax_pooled=1&sslmode=disable&hapax_schema=s");
  EXPECT_TRUE(url.pooled);
  EXPECT_EQ(url.schema, "s");
  EXPECT_THAT(url.hosts, ElementsAre(HasSubstr("sslmode='disable'")));
}

TEST(PostgresUrl, SwitchesShortcuts) {
  EXPECT_TRUE(parse_url("postgres://h/d").fast.create);
  EXPECT_TRUE(parse_url("postgres://h/d?fast=all").fast.commit_turns);
  EXPECT_FALSE(parse_url("postgres://h/d?fast=none&hapax_pooled=1").fast.complete);
  const auto two = parse_url("postgres://h/d?sslmode=disable&fast=create,take_due").fast;
  EXPECT_TRUE(two.create);
  EXPECT_TRUE(two.take_due);
  EXPECT_FALSE(two.create_started);
  EXPECT_FALSE(two.done_steps);
}

TEST(PostgresUrl, RefusesWhatItDoesNotKnow) {
  for (const char* url :
       {"postgres://h/d?fast=", "postgres://h/d?fast=create,", "postgres://h/d?fast=quick",
        "postgres://h/d?hapax_pool=1", "postgres://h/d?hapax_pooled=yes",
        "postgres://h/d?hapax_schema=", "postgres://h/d?hapax_schema=A-b", "postgres://h/d?nonsense=1"}) {
    EXPECT_THROW(parse_url(url), Failure) << url;
  }
}

using PostgresTime = PostgresTest;

TEST_F(PostgresTime, IsTheServersWhereNoClockIsGiven) {
  const auto store = open_postgres_store(at(url_));
  const Submission task = Task();
  const Time created = store->submit({&task, 1}).at(0).execution.created_at;
  const Time server =
      from_ms(std::stoll(server_.run(url_, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8")));
  EXPECT_LE(created, server);
  EXPECT_LT(server - created, std::chrono::minutes(1));
  EXPECT_LT(std::chrono::abs(store->now() - server), std::chrono::minutes(1));
}

using PostgresPooled = PostgresTest;

TEST_F(PostgresPooled, WorksWithoutPreparedStatementsAndListening) {
  const auto store = open_postgres_store(at(url_ + "?hapax_pooled=1"));
  const Submission task = Task().key("k");
  EXPECT_EQ(store->submit({&task, 1}).at(0).kind, SubmitOutcome::Kind::created);
  const Submission again = Task().key("k");
  EXPECT_EQ(store->submit({&again, 1}).at(0).kind, SubmitOutcome::Kind::duplicate);
  ClaimRequest request;
  request.name_space = "default";
  request.queues = {"work"};
  const auto claimed = store->claim({&request, 1}).at(0).executions;
  ASSERT_THAT(claimed, SizeIs(1));
  const Report report{token_of(claimed[0]), Report::Completed{"1"}, ""};
  EXPECT_TRUE(store->finish({&report, 1}).at(0).accepted);
  EXPECT_EQ(server_.run(url_, "SELECT count(*) FROM pg_prepared_statements"), "0");
}

TEST_F(PostgresPooled, PoolerThatNobodySpokeOfIsRefusedWithTheOption) {
  std::string url = server_.pooled(url_);
  url.erase(url.find('?'));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(refusal(at(url)), HasSubstr("hapax_pooled=1"));
  EXPECT_NO_THROW(open_postgres_store(at(server_.pooled(url_))));
}

TEST(PostgresUrl, IsRefusedWithoutShowingThePassword) {
  for (const char* url : {"postgres://u:sec@ret@h/d", "postgres://u:sec%zzret@h/d", "postgres://u:sec%00ret@h/d",
                          "postgres://u:sec/ret@h/d?nonsense=1", "postgres://h/d?password=sec%zzret"}) {
    try {
      parse_url(url);
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), testing::Not(testing::AnyOf(HasSubstr("sec"), HasSubstr("ret")))) << url;
    }
  }
}

// What docs/configuration.md tells to grant.
constexpr const char* kGrants[] = {"USAGE ON SCHEMA hapax",
                                   "SELECT ON ALL TABLES IN SCHEMA hapax",
                                   "INSERT ON ALL TABLES IN SCHEMA hapax",
                                   "UPDATE ON ALL TABLES IN SCHEMA hapax",
                                   "DELETE ON ALL TABLES IN SCHEMA hapax",
                                   "USAGE ON ALL SEQUENCES IN SCHEMA hapax"};

class PostgresRights : public PostgresTest {
 protected:
  PostgresRights() {
    open_postgres_store(at(url_));
    server_.run(url_, "CREATE ROLE " + role_ + " LOGIN");
    for (const char* grant : kGrants) change("GRANT", grant, "TO");
  }
  ~PostgresRights() override { server_.run(url_, "DROP OWNED BY " + role_ + "; DROP ROLE " + role_); }

  void change(const char* verb, const char* grant, const char* preposition) {
    server_.run(url_, fmt::format("{} {} {} {}", verb, grant, preposition, role_));
  }

  // Some of everything that a server does.
  void work() {
    std::string url = url_;
    const auto store = open_postgres_store(at(url.replace(url.find("postgres@"), 8, role_)));
    const Submission task = Task().key("k" + std::to_string(++keys_)), again = task;
    store->submit({&task, 1});
    ClaimRequest request;
    request.name_space = "default";
    request.queues = {"work"};
    request.secret = test_secret(7);
    const auto claimed = store->claim({&request, 1}).at(0).executions;
    ASSERT_THAT(claimed, SizeIs(1));
    const Report report{token_of(claimed[0]), Report::Completed{"1"}, ""};
    EXPECT_TRUE(store->finish({&report, 1}).at(0).accepted);
    store->put_setting({"default", SettingDocument::Kind::queue, "work", "{}"});
    store->release_identity("default", task.execution.identity->hash);
    store->sweep(10);
    store->purge(10);
    store->check();
  }

  const std::string role_ = "hapax_role_" + url_.substr(url_.rfind('_') + 1);
  int keys_ = 0;
};

TEST_F(PostgresRights, ThoseInTheDocumentationAreEnough) { work(); }

TEST_F(PostgresRights, MissingOneIsNamed) {
  for (const char* grant : kGrants) {
    change("REVOKE", grant, "FROM");
    try {
      work();
      ADD_FAILURE() << grant << " is not needed";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::misuse) << grant;
      EXPECT_THAT(failure.what(), AllOf(HasSubstr("permission denied for "), HasSubstr("docs/configuration.md")))
          << grant;
    }
    change("GRANT", grant, "TO");
  }
  work();
}

// A server of the test's own: the shared one is not to be stopped.
TEST(PostgresRestart, StoreGoesOnWhereItStood) {
  for (const bool immediately : {false, true}) {
    PostgresServer server(PostgresServer::Disk::real);
    const auto store = open_postgres_store(at(server.create_database()));
    const Submission before = Task().key("before"), after = Task().key("after");
    store->submit({&before, 1});
    server.stop(immediately);
    EXPECT_THROW(store->submit({&after, 1}), Failure);
    server.start();
    for (;;) {
      try {
        EXPECT_EQ(store->submit({&after, 1}).at(0).kind, SubmitOutcome::Kind::created);
        break;
      } catch (const Failure& failure) {
        ASSERT_TRUE(failure.safe_to_retry()) << failure.what();
        if (store->is_replaced()) store->reopen();  // another server may have less than this one had
        std::this_thread::yield();
      }
    }
    EXPECT_THAT(all_in(*store), SizeIs(2));
  }
}

using PostgresSubmit = PostgresTest;

TEST_F(PostgresSubmit, NewOnesAndDuplicatesAreToldApartWhateverIsExpected) {
  using Kind = SubmitOutcome::Kind;
  const auto store = open_postgres_store(at(url_));
  const auto kinds = [&](std::vector<Submission> batch) {
    std::vector<Kind> kinds;
    for (const SubmitOutcome& outcome : store->submit(batch)) kinds.push_back(outcome.kind);
    return kinds;
  };
  const Submission known = Task();
  kinds({Task().key("a"), known});  // new ones are expected
  EXPECT_THAT(kinds({Task().key("a"), Task().key("b"), Task().key("b"), Task(), Task().key("a").input("2"), known}),
              testing::ElementsAre(Kind::duplicate, Kind::created, Kind::duplicate, Kind::created, Kind::conflict,
                                   Kind::created));
  kinds({Task().key("a")});  // duplicates are
  EXPECT_THAT(kinds({Task().key("a"), Task().key("c"), Task().key("c"), Task()}),
              testing::ElementsAre(Kind::duplicate, Kind::created, Kind::duplicate, Kind::created));
  EXPECT_THAT(all_in(*store), SizeIs(6));
}

// The most memory that this process had since it was last asked.
std::int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::int64_t kb = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kb = std::stoll(line.substr(6));
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return kb << 10;
}

// 64 of 2 MB: read all at once they would take 128 MB, and more on the way.
class PostgresLongOwners : public PostgresTest {
 protected:
  PostgresLongOwners() {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const Submission submission = Task().id(test_id(i + 1)).key("k" + std::to_string(i));
      store_->submit({&submission, 1});
      ClaimRequest request;
      request.name_space = "default";
      request.queues = {"work"};
      request.secret = test_secret(i + 1);
      const Execution claimed = store_->claim({&request, 1}).at(0).executions.at(0);
      const Report report{token_of(claimed), Report::Completed{'"' + std::string(kBytes, 'x') + '"'}};
      store_->finish({&report, 1});
    }
  }

  // The same again, as one batch.
  std::vector<Submission> batch(bool same_ids, Reuse reuse) const {
    std::vector<Submission> batch;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      Submission submission = Task().id(test_id(same_ids ? i + 1 : i + 1001)).key("k" + std::to_string(i)).reuse(reuse);
      submission.brief = true;
      batch.push_back(submission);
    }
    return batch;
  }

  std::vector<SubmitOutcome> submit_within_bounds(const std::vector<Submission>& batch) {
    malloc_trim(0);  // what was freed before must not hide what is needed now
    peak_bytes();
    const std::int64_t before = peak_bytes();
    std::vector<SubmitOutcome> outcomes = store_->submit(batch);
    EXPECT_LT(peak_bytes() - before, 80 << 20);
    return outcomes;
  }

  static constexpr std::uint64_t kCount = 64;
  static constexpr std::size_t kBytes = 2 << 20;
  const std::unique_ptr<Store> store_ = open_postgres_store(at(url_));
};

TEST_F(PostgresLongOwners, OfABatchAreReadInParts) {
  using Kind = SubmitOutcome::Kind;
  std::size_t shown = 0;
  for (const SubmitOutcome& outcome : submit_within_bounds(batch(false, Reuse::allow_failed))) {
    EXPECT_EQ(outcome.kind, Kind::duplicate);
    EXPECT_EQ(outcome.execution.status, Status::completed);
    EXPECT_NE(outcome.omitted, outcome.execution.result.has_value());
    shown += outcome.omitted ? 0 : 1;
  }
  EXPECT_EQ(shown, 3u) << "as many as fit into an answer";
}

TEST_F(PostgresLongOwners, ThatAreTheSubmissionsOfBeforeAreReadInParts) {
  for (const SubmitOutcome& outcome : submit_within_bounds(batch(true, Reuse::allow_failed))) {
    EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::created) << "its first answer";
  }
}

TEST_F(PostgresLongOwners, AreReplacedInParts) {
  for (const SubmitOutcome& outcome : submit_within_bounds(batch(false, Reuse::allow_closed))) {
    EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::created);
    EXPECT_TRUE(outcome.superseded);
  }
}

// A connection and a transaction of the caller's.
class PostgresOwnTransaction : public PostgresTest {
 protected:
  PostgresOwnTransaction() { run("CREATE TABLE orders (id int)"); }
  ~PostgresOwnTransaction() override { PQfinish(connection_); }

  std::string run(const char* sql) {
    PGresult* result = PQexec(connection_, sql);
    EXPECT_TRUE(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK)
        << PQerrorMessage(connection_);
    std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
    PQclear(result);
    return value;
  }

  SubmitOutcome submit(const Submission& submission) {
    return submit_in_transaction(connection_, url_, submission, QueuePolicies());
  }

  const std::unique_ptr<Store> store_ = open_postgres_store(at(url_));
  PGconn* connection_ = PQconnectdb(url_.c_str());
};

TEST_F(PostgresOwnTransaction, TaskExistsIfTheCallerCommits) {
  run("BEGIN");
  run("INSERT INTO orders VALUES (1)");
  const SubmitOutcome outcome = submit(Task().key("k"));
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::created);
  EXPECT_THAT(all_in(*store_), IsEmpty());
  EXPECT_EQ(run("SELECT count(*) FROM orders"), "1") << "the caller's search path is as it was";
  run("COMMIT");
  EXPECT_THAT(all_in(*store_), testing::ElementsAre(outcome.execution));
}

TEST_F(PostgresOwnTransaction, NothingIsLeftIfTheCallerRollsBack) {
  run("BEGIN");
  submit(Task().key("k"));
  run("ROLLBACK");
  const Submission task = Task().key("k");
  EXPECT_EQ(store_->submit({&task, 1}).at(0).kind, SubmitOutcome::Kind::created);
}

TEST_F(PostgresOwnTransaction, DuplicateFindsTheExecutionOfBefore) {
  const Submission before = Task().key("k");
  store_->submit({&before, 1});
  run("BEGIN");
  const SubmitOutcome outcome = submit(Task().key("k"));
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::duplicate);
  EXPECT_EQ(outcome.execution.id, before.execution.id);
  EXPECT_EQ(submit(Task().key("k").input("2")).kind, SubmitOutcome::Kind::conflict);
  run("COMMIT");
}

TEST_F(PostgresOwnTransaction, OneThatStaysOpenHoldsUpItsKeyForSomeSecondsOnly) {
  run("BEGIN");
  submit(Task().key("k"));
  const Submission task = Task().key("k");
  try {
    store_->submit({&task, 1});
    FAIL() << "the key was free";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::unavailable);
    EXPECT_THAT(failure.what(), HasSubstr("a transaction has been open for long"));
  }
  run("ROLLBACK");
  EXPECT_EQ(store_->submit({&task, 1}).at(0).kind, SubmitOutcome::Kind::created);
}

// As a cleanup does it: it locks the entry first, and deletes it later.
TEST_F(PostgresOwnTransaction, EntryThatIsDeletedWhileASubmissionWaitsForItIsMadeAnew) {
  const Submission before = Task().key("k");
  store_->submit({&before, 1});
  run("BEGIN");
  run("SELECT hash FROM hapax.identities FOR UPDATE");
  const Submission after = Task().key("k").reuse(Reuse::replace);
  std::thread submitter([&] { EXPECT_EQ(store_->submit({&after, 1}).at(0).kind, SubmitOutcome::Kind::created); });
  while (run("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0") std::this_thread::yield();
  for (const char* table : {"identities", "open", "executions"})
    run(fmt::format("DELETE FROM hapax.{}", table).c_str());
  run("COMMIT");
  submitter.join();
  EXPECT_EQ(run("SELECT count(*) FROM hapax.identities"), "1");
  const Submission again = Task().key("k");
  const SubmitOutcome outcome = store_->submit({&again, 1}).at(0);
  EXPECT_EQ(outcome.kind, SubmitOutcome::Kind::duplicate);
  EXPECT_EQ(outcome.execution.id, after.execution.id);
}

TEST_F(PostgresOwnTransaction, NeedsOneThatWasBegun) {
  EXPECT_THROW(submit(Task()), Failure);
  EXPECT_THAT(all_in(*store_), IsEmpty());
}

TEST_F(PostgresOwnTransaction, GoesOnAfterARefusal) {
  server_.run(url_, "ALTER SCHEMA hapax RENAME TO hidden");
  run("BEGIN");
  run("INSERT INTO orders VALUES (1)");
  EXPECT_THROW(submit(Task()), Failure);
  run("COMMIT");
  EXPECT_EQ(run("SELECT count(*) FROM orders"), "1");
}

}  // namespace
}  // namespace hapax
