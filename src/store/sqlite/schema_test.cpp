#include "store/sqlite/schema.h"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "store/sqlite/sqlite_store.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using sqlite::Connection;
using sqlite::newest_schema_version;
using testing::HasSubstr;

class SqliteFile : public testing::Test {
 protected:
  std::unique_ptr<Store> open(bool create = true) {
    return open_sqlite_store({.path = path, .create = create, .timeout = Duration(5000)}, clock);
  }

  std::unique_ptr<Connection> connect() {
    return std::make_unique<Connection>(sqlite::ConnectionOptions{.path = path, .create = true});
  }

  void expect_refused(Failure::Code code, const std::string& part) {
    try {
      open(false);
      ADD_FAILURE() << "it was opened";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), code) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr(path));
      EXPECT_THAT(failure.what(), HasSubstr(part));
    }
  }

  TempDir directory = TempDir::in_memory_if_possible();
  std::string path = directory.file("hapax.db");
  ManualClock clock;
};

TEST_F(SqliteFile, NewOneGetsTheNewestSchemaAndTheLog) {
  open();
  auto connection = connect();
  EXPECT_EQ(sqlite::schema_version(*connection), newest_schema_version());
  sqlite::Statement statement(*connection, "PRAGMA journal_mode");
  sqlite::Run run(statement);
  ASSERT_TRUE(run.next());
  EXPECT_EQ(run.text(0), "wal");
}

TEST_F(SqliteFile, EmptyOneIsTakenForNew) {
  { std::ofstream create(path); }
  EXPECT_NO_THROW(open());
}

TEST_F(SqliteFile, MissingOneIsRefusedUnlessItMayBeCreated) { expect_refused(Failure::Code::misuse, "does not exist"); }

TEST_F(SqliteFile, DirectoryIsRefused) {
  path = directory.path().string();
  expect_refused(Failure::Code::misuse, "is a directory");
}

TEST_F(SqliteFile, MissingFolderIsRefused) {
  path = directory.file("none/hapax.db");
  EXPECT_THROW(open(), Failure);
}

TEST_F(SqliteFile, TextFileIsRefusedAsNoDatabase) {
  std::ofstream(path) << std::string(8192, 'x');
  expect_refused(Failure::Code::corrupt, "no SQLite database");
}

// The tables of an application, with names that a careless library would take for its own.
constexpr const char* kApplication = R"sql(
CREATE TABLE events (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE queues (name TEXT);
CREATE INDEX ready ON events (title);
INSERT INTO events (title) VALUES ('launch');
PRAGMA user_version = 3;
PRAGMA application_id = 42;
)sql";

void expect_application_untouched(Connection& connection) {
  EXPECT_EQ(connection.read_integer("PRAGMA user_version"), 3);
  EXPECT_EQ(connection.read_integer("PRAGMA application_id"), 42);
  EXPECT_EQ(connection.read_integer("SELECT count(*) FROM events WHERE title = 'launch'"), 1);
  EXPECT_EQ(connection.read_integer("SELECT count(*) FROM events"), 1);
  EXPECT_EQ(connection.read_integer("SELECT count(*) FROM queues"), 0);
}

TEST_F(SqliteFile, OfAnApplicationGetsOurTablesAndKeepsItsOwn) {
  connect()->exec(kApplication);
  auto store = open(false);
  store->submit(std::vector<Submission>{Task().id(test_id(1))});
  EXPECT_TRUE(store->find("default", test_id(1)));
  auto connection = connect();
  expect_application_untouched(*connection);
  EXPECT_EQ(connection->read_integer(
                "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'hapax_%'"
                " AND name NOT LIKE 'sqlite_autoindex_hapax_%' AND name NOT IN ('events', 'queues', 'ready')"),
            0);
}

TEST_F(SqliteFile, AnApplicationMayMigrateItsOwnTablesAtAnyTime) {
  connect()->exec(kApplication);
  auto store = open();
  store->submit(std::vector<Submission>{Task().id(test_id(1))});
  connect()->exec("BEGIN; ALTER TABLE events ADD COLUMN at INTEGER; PRAGMA user_version = 4; COMMIT");
  EXPECT_TRUE(store->find("default", test_id(1)));
  store->submit(std::vector<Submission>{Task().id(test_id(2))});
  store.reset();
  EXPECT_TRUE(open(false)->find("default", test_id(2)));
  EXPECT_EQ(connect()->read_integer("PRAGMA user_version"), 4);
}

TEST_F(SqliteFile, OfANewerSchemaIsRefused) {
  open();
  connect()->exec("UPDATE hapax_store SET version = 1000");
  expect_refused(Failure::Code::misuse, "schema 1000");
}

TEST_F(SqliteFile, OfANewerSchemaIsRefusedEvenWhereMigratingWasAsked) {
  open();
  connect()->exec("UPDATE hapax_store SET version = 1000");
  EXPECT_THROW(open_sqlite_store({.path = path, .migrate = true}, clock), Failure);
}

TEST_F(SqliteFile, ReadOnlyOneIsRefused) {
  open();
  path = "file:" + path + "?mode=ro";
  expect_refused(Failure::Code::misuse, "read-only");
}

TEST_F(SqliteFile, MigratingAgainChangesNothing) {
  auto store = open();
  store->submit(std::vector<Submission>{Task().id(test_id(1))});
  store->migrate();
  EXPECT_TRUE(store->find("default", test_id(1)));
}

TEST_F(SqliteFile, OpenedByManyAtOnceIsMigratedOnce) {
  std::vector<std::thread> openers;
  for (int i = 0; i < 8; ++i) openers.emplace_back([&] { EXPECT_NO_THROW(open()); });
  for (std::thread& opener : openers) opener.join();
  EXPECT_NO_THROW(open(false));
}

}  // namespace
}  // namespace hapax
