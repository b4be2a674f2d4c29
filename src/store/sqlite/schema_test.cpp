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
  EXPECT_EQ(connection->read_integer("PRAGMA user_version"), newest_schema_version());
  EXPECT_EQ(connection->read_integer("PRAGMA application_id"), sqlite::kApplicationId);
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

TEST_F(SqliteFile, OfAnotherProgramIsRefused) {
  connect()->exec("CREATE TABLE cats (name TEXT)");
  expect_refused(Failure::Code::misuse, "none of Hapax's");
}

TEST_F(SqliteFile, OfANewerSchemaIsRefused) {
  open();
  connect()->exec("PRAGMA user_version = 1000");
  expect_refused(Failure::Code::misuse, "schema 1000");
}

TEST_F(SqliteFile, OfAnOlderSchemaSaysToMigrate) {
  connect()->exec("PRAGMA application_id = 1214345336; CREATE TABLE old (n INTEGER)");
  expect_refused(Failure::Code::misuse, "hapax migrate");
}

TEST_F(SqliteFile, OfAnOlderSchemaIsBroughtUpToDateWhereThatWasAsked) {
  connect()->exec("PRAGMA application_id = 1214345336; CREATE TABLE old (n INTEGER)");
  auto store = open_sqlite_store({.path = path, .create = false, .migrate = true}, clock);
  store->submit(std::vector<Submission>{Task().id(test_id(1))});
  EXPECT_TRUE(store->find("default", test_id(1)));
  EXPECT_EQ(connect()->read_integer("PRAGMA user_version"), newest_schema_version());
  EXPECT_NO_THROW(open(false));
}

TEST_F(SqliteFile, OfANewerSchemaIsRefusedEvenWhereMigratingWasAsked) {
  open();
  connect()->exec("PRAGMA user_version = 1000");
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
