// Every write, sync, truncation and opening of the SQLite store's files fails once, and the machine stops in the middle
// of every write: enumerated, not sampled. What was acknowledged is always there, what was refused has not happened,
// and the same call works once the fault is gone.

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>
#include <functional>

#include "crash/faulty_vfs.h"
#include "store/sqlite/sqlite_store.h"
#include "support/describe.h"
#include "support/manual_clock.h"
#include "support/task.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

// Everything that a reader can see.
struct State {
  std::vector<Execution> executions;
  std::vector<SettingDocument> settings;
  std::vector<std::optional<FoundIdentity>> identities;

  bool operator==(const State&) const = default;
};

// The answers of the verbs.
struct Answers {
  std::vector<SubmitOutcome> submits;
  std::vector<ClaimOutcome> claims;
  std::vector<FinishOutcome> finishes;
  std::vector<ExtendOutcome> extensions;
  std::vector<ControlOutcome> controls;
  std::vector<SweepOutcome> sweeps;
  std::vector<PurgeOutcome> purges;

  bool operator==(const Answers&) const = default;
};

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  for (T& item : more) all.push_back(std::move(item));
}

// The life of a store in steps. A step that failed can be repeated.
class Script {
 public:
  explicit Script(std::string path) : path_(std::move(path)) {}

  static constexpr int kSteps = 17;

  void step(int number) {
    switch (number) {
      case 0: store_ = open_sqlite_store({.path = FaultyVfs::uri(path_), .timeout = Duration(100)}, clock); break;
      case 1: append(answers.submits, store_->submit(tasks(1, 12))); break;
      case 2: append(answers.claims, store_->claim(std::vector{claim_request(8)})); break;
      case 3: append(answers.finishes, store_->finish(reports())); break;
      case 4: checkpoint(); break;
      case 5: append(answers.submits, store_->submit(tasks(1, 12, 100))); break;
      case 6: append(answers.controls, store_->control(std::vector{control(ControlRequest::Action::cancel)})); break;
      case 7: append(answers.controls, store_->control(std::vector{control(ControlRequest::Action::retry)})); break;
      case 8:
        append(answers.extensions, store_->extend(std::vector{Extension{token_of(claimed(7)), Duration(1000)}}));
        break;
      case 9: store_->put_setting({"default", SettingDocument::Kind::queue, "work", "{}"}); break;
      case 10: clock.advance(Duration(61'000)); break;
      case 11: answers.sweeps.push_back(store_->sweep(100)); break;
      case 12: store_->check(); break;
      case 13: clock.advance(std::chrono::days(8)); break;
      case 14: answers.purges.push_back(store_->purge(3)); break;
      case 15: checkpoint(); break;
      case 16: append(answers.submits, store_->submit(tasks(1, 12, 200))); break;
      default: FAIL() << number;
    }
  }

  State state() { return state_of(*store_); }

  static State state_of(Store& store) {
    ListFilter all;
    all.name_space = "default";
    all.limit = 1000;
    State state{store.list(all), store.settings(), {}};
    for (int i = 1; i <= 12; ++i) state.identities.push_back(store.find_identity(key_hash("work", key(i))));
    return state;
  }

  ManualClock clock;
  Answers answers;

 private:
  static std::string key(int i) { return "key-" + std::to_string(i); }

  static std::vector<Submission> tasks(int first, int last, int id_offset = 0) {
    std::vector<Submission> submissions;
    for (int i = first; i <= last; ++i) {
      Task task;
      task.id(test_id(static_cast<std::uint64_t>(i + id_offset))).key(key(i)).input("1").priority(i % 2);
      if (i % 4 == 0) task.input('"' + std::string(9000, 'x') + '"');
      if (i % 5 == 0) task.ttl(std::chrono::days(30));
      if (i % 3 == 0) task.concurrency_key("c");
      submissions.push_back(task);
    }
    return submissions;
  }

  static ClaimRequest claim_request(std::int32_t limit) {
    return {.name_space = "default", .queues = {"work"}, .limit = limit, .worker = "w", .secret = test_secret(1)};
  }

  static ControlRequest control(ControlRequest::Action action) {
    ControlRequest request;
    request.name_space = "default";
    request.request_key = action == ControlRequest::Action::cancel ? "cancel" : "retry";
    request.action = action;
    request.target = test_id(12);
    return request;
  }

  const Execution& claimed(std::size_t n) const { return answers.claims.at(0).executions.at(n); }

  std::vector<Report> reports() const {
    std::vector<Report> reports;
    for (std::size_t i = 0; i < 4; ++i) reports.push_back({token_of(claimed(i)), Report::Completed{"{\"ok\":true}"}});
    reports.push_back({token_of(claimed(4)), Report::Failed{{"E", "first"}, true}});
    reports.push_back({token_of(claimed(5)), Report::Failed{{"E", "last"}, false}});
    return reports;
  }

  // By another client, which may fail: the store must not be affected.
  void checkpoint() {
    sqlite3* db = nullptr;
    if (sqlite3_open_v2(FaultyVfs::uri(path_).c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, nullptr) ==
        SQLITE_OK) {
      sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
    }
    sqlite3_close(db);
  }

  std::string path_;
  std::unique_ptr<Store> store_;
};

class SqliteFaults : public testing::Test {
 protected:
  static void SetUpTestSuite() { FaultyVfs::install(); }

  SqliteFaults() {
    Script script(fresh_path());
    for (int step = 0; step < Script::kSteps; ++step) {
      script.step(step);
      expected_states.push_back(script.state());
    }
    expected_answers = script.answers;
  }

  void TearDown() override { FaultyVfs::lift(); }

  std::string fresh_path() {
    const std::string name = "run-" + std::to_string(++runs);
    std::filesystem::create_directory(directory.path() / name);
    return directory.file(name + "/hapax.db");
  }

  static void expect_sound(const std::string& path) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    std::string answer;
    sqlite3_exec(
        db, "PRAGMA integrity_check",
        [](void* out, int, char** values, char**) { return *static_cast<std::string*>(out) += values[0], 0; }, &answer,
        nullptr);
    sqlite3_close(db);
    EXPECT_EQ(answer, "ok");
  }

  // True if the operation was reached n times.
  bool run_with_fault(FileOperation operation, int n, int code) {
    SCOPED_TRACE(testing::Message() << "failing from the " << n << ". time on");
    const std::string path = fresh_path();
    bool failed = false;
    {
      Script script(path);
      FaultyVfs::fail_from(operation, n, code);
      for (int step = 0; step < Script::kSteps; ++step) {
        SCOPED_TRACE(testing::Message() << "step " << step);
        try {
          script.step(step);
        } catch (const Failure& failure) {
          FaultyVfs::lift();
          expect_refused(script, step, failure);
          script.step(step);
        }
        if (testing::Test::HasFailure()) return false;
      }
      failed = FaultyVfs::has_failed();
      FaultyVfs::lift();
      EXPECT_TRUE(script.answers == expected_answers);
      EXPECT_TRUE(script.state() == expected_states.back());
    }
    expect_sound(path);
    std::filesystem::remove_all(std::filesystem::path(path).parent_path());
    return failed;
  }

  void expect_refused(Script& script, int step, const Failure& failure) {
    if (step == 0) return;
    EXPECT_TRUE(failure.safe_to_retry()) << failure.what();
    const State state = script.state();
    const auto before = static_cast<std::size_t>(step) - 1;
    const bool nothing = state == expected_states[before];
    const bool unknown = failure.code() == Failure::Code::outcome_unknown;
    EXPECT_TRUE(nothing || (unknown && state == expected_states[before + 1])) << failure.what();
  }

  void run_with_every_fault(FileOperation operation, int code, int at_least) {
    int n = 1;
    while (run_with_fault(operation, n, code)) ++n;
    EXPECT_GT(n, at_least);
  }

  TempDir directory = TempDir::in_memory_if_possible();
  int runs = 0;
  std::vector<State> expected_states;  // after each step
  Answers expected_answers;
};

TEST_F(SqliteFaults, FullDiskAtEveryWrite) { run_with_every_fault(FileOperation::write, SQLITE_FULL, 50); }
TEST_F(SqliteFaults, ErrorAtEveryWrite) { run_with_every_fault(FileOperation::write, SQLITE_IOERR_WRITE, 50); }
TEST_F(SqliteFaults, ErrorAtEverySync) { run_with_every_fault(FileOperation::sync, SQLITE_IOERR_FSYNC, 10); }
TEST_F(SqliteFaults, ErrorAtEveryTruncation) {
  run_with_every_fault(FileOperation::truncate, SQLITE_IOERR_TRUNCATE, 1);
}
TEST_F(SqliteFaults, ErrorAtEveryOpening) { run_with_every_fault(FileOperation::open, SQLITE_CANTOPEN, 2); }

TEST_F(SqliteFaults, EndInTheMiddleOfEveryWrite) {
  for (int n = 1;; ++n) {
    SCOPED_TRACE(testing::Message() << "write " << n);
    const std::string path = fresh_path(), left = fresh_path();
    int step = 0, ended_in = -1;
    Time ended_at;
    {
      Script script(path);
      FaultyVfs::at_write(n, [&] {
        for (const char* suffix : {"", "-wal", "-journal"}) {
          if (std::filesystem::exists(path + suffix)) std::filesystem::copy_file(path + suffix, left + suffix);
        }
        ended_in = step;
        ended_at = script.clock.now();
      });
      for (; step < Script::kSteps; ++step) script.step(step);
    }
    if (ended_in < 0) {
      EXPECT_GT(n, 50);
      break;
    }
    // Closing the store is a separate step, without an answer.
    ManualClock clock;
    clock.advance(ended_at - clock.now());
    const State state = Script::state_of(*open_sqlite_store({.path = left}, clock));
    if (ended_in == 0) {
      EXPECT_TRUE(state.executions.empty());
    } else {
      const auto before = static_cast<std::size_t>(ended_in) - 1;
      const bool acknowledged = state == expected_states[before];
      const bool committed = before + 1 < expected_states.size() && state == expected_states[before + 1];
      EXPECT_TRUE(acknowledged || committed) << "in step " << ended_in;
    }
    expect_sound(left);
    for (const std::string& file : {path, left}) std::filesystem::remove_all(std::filesystem::path(file).parent_path());
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace hapax
