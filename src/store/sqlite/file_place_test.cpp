// What becomes of the store when its files are deleted, replaced or restored while it is open, or kept locked by
// others.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_store.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SqlitePlace : public testing::Test {
 protected:
  std::unique_ptr<Store> open(Duration timeout = Duration(20'000)) { return open_at(path, timeout); }
  std::unique_ptr<Store> open_at(const std::string& file, Duration timeout = Duration(20'000)) {
    return open_sqlite_store({.path = file, .timeout = timeout}, clock);
  }

  static SubmitOutcome submit(Store& store, const Submission& submission) {
    return store.submit(std::span(&submission, 1)).at(0);
  }

  static std::size_t tasks(Store& store, std::optional<std::string> queue = {}) {
    ListFilter filter;
    filter.name_space = "default";
    filter.queue = std::move(queue);
    return store.list(filter).size();
  }

  template <class Call>
  static void expect_refused(Call call, const std::string& part, Failure::Code code = Failure::Code::unavailable) {
    try {
      call();
      ADD_FAILURE() << "it was answered";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), code) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr(part));
    }
  }

  // Submitting, claiming and reading alike.
  void expect_all_refused(Store& store, const std::string& part) {
    expect_refused([&] { submit(store, Task()); }, part);
    expect_refused([&] { store.find("default", test_id(1)); }, part);
    expect_refused([&] { store.check(); }, part);
    EXPECT_TRUE(store.is_replaced());
  }

  void move(const std::string& from, const std::string& to) {
    for (const char* ending : {"", "-wal", "-shm"}) {
      if (fs::exists(from + ending)) fs::rename(from + ending, to + ending);
    }
  }

  static std::string contents(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  mode_t mode_of(const std::string& file) {
    struct stat status{};
    EXPECT_EQ(::stat(file.c_str(), &status), 0) << file;
    return status.st_mode & 0777;
  }

  TempDir directory = TempDir::in_memory_if_possible();
  std::string path = directory.file("hapax.db"), other = directory.file("other.db");
  ManualClock clock;
};

// No file of this process may grow while it lives.
class NoMoreBytes {
 public:
  NoMoreBytes() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoMoreBytes() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  NoMoreBytes(const NoMoreBytes&) = delete;
  NoMoreBytes& operator=(const NoMoreBytes&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(SqlitePlace, WhatIsThereIsReadWhileNothingCanBeWritten) {
  auto store = open();
  submit(*store, Task().id(test_id(1)));
  {
    const NoMoreBytes full;
    for (int n = 0; n < 3; ++n) EXPECT_THROW(submit(*store, Task().id(test_id(2))), Failure);
    EXPECT_TRUE(store->find("default", test_id(1)));
  }
  submit(*store, Task().id(test_id(3)));
  EXPECT_TRUE(store->find("default", test_id(1)));
}

TEST_F(SqlitePlace, DeletedFileIsNoticedBeforeAnythingIsAcknowledged) {
  auto store = open();
  submit(*store, Task().id(test_id(1)));
  fs::remove(path);
  expect_all_refused(*store, "deleted");
  EXPECT_FALSE(fs::exists(path));
  expect_refused([&] { store->reopen(); }, "deleted");
}

TEST_F(SqlitePlace, DeletedLogIsNoticedBeforeAnythingIsAcknowledgedAndNothingInItIsLost) {
  auto store = open();
  submit(*store, Task().id(test_id(1)));
  fs::remove(path + "-wal");
  expect_all_refused(*store, "-wal was deleted");
  store.reset();
  EXPECT_TRUE(open()->find("default", test_id(1)));
}

TEST_F(SqlitePlace, FileThatIsPutBackIsUsedAgain) {
  auto store = open();
  submit(*store, Task().id(test_id(1)));
  move(path, other);
  expect_all_refused(*store, "deleted or moved");
  move(other, path);
  store->reopen();
  EXPECT_FALSE(store->is_replaced());
  EXPECT_TRUE(store->find("default", test_id(1)));
  submit(*store, Task().id(test_id(2)));
}

// The numbers of queues are other ones in the new file.
TEST_F(SqlitePlace, ReplacedFileIsNotTouchedAndAfterReopeningNothingOfTheOldOneIsRemembered) {
  submit(*open_at(other), Task().queue("beta"));
  auto store = open();
  submit(*store, Task().queue("alpha"));
  const std::string before = store->identity();
  for (const char* ending : {"", "-wal", "-shm"}) fs::remove(path + ending);
  fs::rename(other, path);
  expect_all_refused(*store, "replaced");
  expect_refused([&] { submit(*store, Task().queue("alpha")); }, "replaced");

  store->reopen();
  EXPECT_NE(store->identity(), before);
  submit(*store, Task().id(test_id(1)).queue("alpha"));
  EXPECT_EQ(store->find("default", test_id(1))->queue, "alpha");
  EXPECT_EQ(tasks(*store), 2u);
  sqlite::Connection check({.path = path});
  EXPECT_EQ(check.read_integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

TEST_F(SqlitePlace, TheOldLogBesideANewFileIsNeverReadIntoIt) {
  submit(*open_at(other), Task().queue("beta"));
  auto store = open();
  for (std::uint64_t i = 1; i <= 100; ++i) submit(*store, Task().queue("alpha"));
  fs::rename(other, path);
  expect_all_refused(*store, "move " + path + "-wal and " + path + "-shm away");
  expect_refused([&] { store->reopen(); }, "-wal");
  fs::remove(path + "-wal");
  fs::remove(path + "-shm");
  store->reopen();
  EXPECT_EQ(tasks(*store), 1u);
  store.reset();
  sqlite::Connection check({.path = path});
  EXPECT_EQ(check.read_integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

// What `sqlite3 hapax.db ".restore old.db"` does: it is the same file, and its content is another.
TEST_F(SqlitePlace, BackupRestoredIntoTheFileLeavesNothingRemembered) {
  auto store = open();
  submit(*store, Task().queue("alpha"));
  fs::copy(path, other);
  fs::copy(path + "-wal", other + "-wal");
  submit(*store, Task().queue("beta"));
  EXPECT_EQ(tasks(*store, "beta"), 1u);

  sqlite::Connection old({.path = other}), file({.path = path, .busy_timeout = Duration(5000)});
  sqlite3_backup* restore = sqlite3_backup_init(file.handle(), "main", old.handle(), "main");
  ASSERT_NE(restore, nullptr);
  EXPECT_EQ(sqlite3_backup_step(restore, -1), SQLITE_DONE);
  sqlite3_backup_finish(restore);
  file.exec("INSERT INTO hapax_queues (name_space, queue, kind) VALUES ('shop', 'gamma', 0)");

  submit(*store, Task().id(test_id(9)).queue("beta"));
  const Execution found = store->find("default", test_id(9)).value();
  EXPECT_EQ(found.queue, "beta");
  EXPECT_EQ(tasks(*store, "beta"), 1u);
}

TEST_F(SqlitePlace, OtherDataInTheSameFileIsRefusedUntilItIsReopened) {
  auto store = open();
  submit(*store, Task().queue("alpha"));
  sqlite::Connection({.path = path, .busy_timeout = Duration(5000)})
      .exec("UPDATE hapax_store SET identity = randomblob(16)");
  expect_all_refused(*store, "holds other data");
  store->reopen();
  EXPECT_FALSE(store->is_replaced());
  submit(*store, Task().queue("alpha"));
}

// What `cp other.db hapax.db` does: the inode stays.
TEST_F(SqlitePlace, OverwrittenFileIsNoticedAndNothingIsWrittenIntoIt) {
  submit(*open_at(other), Task().queue("beta"));
  auto store = open();
  submit(*store, Task().id(test_id(1)).queue("alpha"));
  fs::copy_file(path, directory.file("kept.db"));
  fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  expect_all_refused(*store, "overwritten");
  expect_refused([&] { store->reopen(); }, "overwritten");

  fs::copy_file(directory.file("kept.db"), path, fs::copy_options::overwrite_existing);
  store->reopen();
  EXPECT_TRUE(store->find("default", test_id(1)));
  fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  store.reset();
  EXPECT_EQ(contents(path), contents(other));
}

TEST_F(SqlitePlace, FileOverwrittenWithNoDatabaseOfHapaxIsNoticed) {
  auto store = open();
  std::ofstream(path, std::ios::trunc) << std::string(8192, 'x');
  expect_all_refused(*store, "overwritten");
  std::ofstream(path, std::ios::trunc).flush();
  expect_all_refused(*store, "overwritten");
}

TEST_F(SqlitePlace, CheckNoticesAnOverwrittenFileOfTheSameTime) {
  open_at(other);
  auto store = open();
  submit(*store, Task());
  const auto written = fs::last_write_time(path);
  fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  fs::last_write_time(path, written);
  expect_refused([&] { store->check(); }, "overwritten");
}

TEST_F(SqlitePlace, ClientsAreToldWhatHappenedWithoutThePath) {
  auto store = open();
  fs::remove(path);
  try {
    store->check();
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.for_clients(), "The file hapax.db was deleted or moved away while the server had it open.");
  }
}

TEST_F(SqlitePlace, TheWatchTellsOfAReplacedFile) {
  auto store = open();
  std::atomic<bool> told = false;
  store->watch([&] {
    if (store->is_replaced()) {
      told = true;
      told.notify_all();
    }
  });
  fs::remove(path);
  told.wait(false);
  store->watch({});
}

TEST_F(SqlitePlace, SubmittingInATransactionOnADeletedFileIsRefused) {
  open();
  sqlite::Connection own({.path = path});
  own.exec("BEGIN IMMEDIATE");
  fs::remove(path);
  expect_refused([&] { submit_in_transaction(own.handle(), Task(), QueuePolicies(), clock.now()); }, "deleted");
}

TEST_F(SqlitePlace, NewFilesAreReadableByTheirOwnerAloneAndOldOnesKeepTheirMode) {
  {
    const auto store = open();
    submit(*store, Task());
    for (const char* ending : {"", "-wal", "-shm"}) EXPECT_EQ(mode_of(path + ending), 0600u) << ending;
  }
  fs::permissions(path, fs::perms(0640));
  const auto store = open();
  submit(*store, Task());
  for (const char* ending : {"", "-wal", "-shm"}) EXPECT_EQ(mode_of(path + ending), 0640u) << ending;
}

// ---- a file that is kept locked

TEST_F(SqlitePlace, CallsOnALockedFileEndTogetherAtTheirDeadline) {
  constexpr Duration kTimeout{300};
  auto store = open(kTimeout);
  submit(*store, Task());
  sqlite::Connection locker({.path = path});
  locker.exec("BEGIN IMMEDIATE");
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> callers;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      expect_refused([&] { submit(*store, Task()); }, "");
      ++refused;
    });
  }
  for (std::thread& caller : callers) caller.join();
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(refused, 8);
  EXPECT_GE(took, kTimeout);
  EXPECT_LT(took, 4 * kTimeout) << "one after the other it would be eight of them";
  locker.exec("ROLLBACK");
  submit(*store, Task());
}

TEST_F(SqlitePlace, TheCallersOwnDeadlineCountsIfItIsEarlier) {
  auto store = open();
  sqlite::Connection locker({.path = path});
  locker.exec("BEGIN IMMEDIATE");
  const CallDeadline soon(Duration(50));
  expect_refused([&] { submit(*store, Task()); }, "kept it locked");
}

TEST_F(SqlitePlace, ClientsAreToldThatAnotherProcessKeepsTheFileLocked) {
  auto store = open(Duration(100));
  sqlite::Connection locker({.path = path});
  locker.exec("BEGIN IMMEDIATE");
  try {
    submit(*store, Task());
    FAIL() << "it was answered";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.for_clients(), "Another process keeps the store's file locked.");
  }
}

TEST_F(SqlitePlace, InterruptedCallsEndAtOnceAndNoneBeginsAfterThem) {
  auto store = open(std::chrono::hours(1));
  sqlite::Connection locker({.path = path});
  locker.exec("BEGIN IMMEDIATE");
  std::thread caller([&] { expect_refused([&] { submit(*store, Task()); }, ""); });
  store->interrupt();
  caller.join();
  locker.exec("ROLLBACK");
  expect_refused([&] { submit(*store, Task()); }, "is ending");
}

}  // namespace
}  // namespace hapax
