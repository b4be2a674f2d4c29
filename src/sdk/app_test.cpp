// The library from its user's side, the same on every kind of URL.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/describe.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <thread>

#include "hapax/app.h"
#include "support/place.h"
#include "support/temp_dir.h"

namespace {

using namespace std::chrono_literals;

struct Order {
  int id = 0;
  double amount = 0;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, amount))

struct Charge {
  std::string reference;
  double amount = 0;
};
BOOST_DESCRIBE_STRUCT(Charge, (), (reference, amount))

Charge charge_card(const Order& order) { return {"charge-" + std::to_string(order.id), order.amount}; }

class AppTest : public ::testing::TestWithParam<std::string> {
 protected:
  hapax::Place place_{GetParam()};
  hapax::App app_ = hapax::open(place_.url());

  void work(hapax::WorkOptions options = {}) {
    options.handle_signals = false;
    if (!options.until_idle_for) options.until_idle_for = 50ms;
    app_.work(options);
  }
};

TEST_P(AppTest, ATaskIsAFunction) {
  app_.task("charge_card", charge_card, {.queue = "payments"});
  const auto handle = app_.submit(charge_card, Order{456, 99.99}, hapax::key("charge-order-456"));
  EXPECT_TRUE(handle.created());
  EXPECT_EQ(handle.status(), "pending");
  work();
  const auto charge = handle.result<Charge>();
  EXPECT_EQ(charge.reference, "charge-456");
  EXPECT_EQ(charge.amount, 99.99);
  EXPECT_EQ(handle.status(), "completed");
}

TEST_P(AppTest, SaidTwiceItHappensOnce) {
  std::atomic<int> runs = 0;
  app_.task("count", [&](const Order&) { return ++runs; });
  const auto first = app_.submit("count", Order{1, 2}, hapax::key("k"));
  const auto second = app_.submit("count", Order{1, 2}, hapax::key("k"));
  EXPECT_FALSE(second.created());
  EXPECT_TRUE(second.deduplicated_from());
  EXPECT_EQ(first.id(), second.id());
  work();
  EXPECT_EQ(second.result<int>(), 1);
  EXPECT_EQ(runs, 1);
}

TEST_P(AppTest, TheSameKeyWithAnotherInputIsAConflict) {
  app_.submit("t", Order{1, 2}, hapax::key("k"));
  try {
    app_.submit("t", Order{1, 3}, hapax::key("k"));
    FAIL() << "no conflict";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "IdempotencyConflict");
    EXPECT_FALSE(error.safe_to_retry());
  }
}

TEST_P(AppTest, ADuplicateCanBeAnError) {
  app_.submit("t", 1, hapax::key("k"));
  EXPECT_THROW(app_.submit("t", 1, {.key = "k", .on_duplicate = "error"}), hapax::Error);
}

TEST_P(AppTest, EveryShapeOfHandlerWorks) {
  app_.task("nothing", [] {});
  app_.task("context", [](hapax::TaskContext& context) { return context.attempt(); });
  app_.task("input", [](int n) { return n + 1; });
  app_.task("both", [](hapax::TaskContext& context, const std::vector<int>& n) {
    return context.type() + std::to_string(n.size());
  });
  const auto nothing = app_.submit("nothing", nullptr), context = app_.submit("context", nullptr),
             input = app_.submit("input", 41), both = app_.submit("both", std::vector{1, 2, 3});
  work();
  EXPECT_EQ(nothing.result_json(), "");
  EXPECT_EQ(context.result<int>(), 1);
  EXPECT_EQ(input.result<int>(), 42);
  EXPECT_EQ(both.result<std::string>(), "both3");
}

TEST_P(AppTest, AnExceptionIsTriedAgainAndAFinalErrorIsNot) {
  std::atomic<int> attempts = 0;
  app_.task("flaky", [&] {
    if (++attempts < 3) throw std::runtime_error("not yet");
    return attempts.load();
  });
  app_.task("declined", []() -> int { throw hapax::FinalError("card declined"); });
  const hapax::SubmitOptions quick{.retry = {.initial = 1ms}};
  const auto flaky = app_.submit("flaky", nullptr, quick), declined = app_.submit("declined", nullptr, quick);
  work({.until_idle_for = 200ms});
  EXPECT_EQ(flaky.result<int>(), 3);
  try {
    declined.result<int>();
    FAIL() << "a result of a failed task";
  } catch (const hapax::TaskFailed& error) {
    EXPECT_EQ(error.code(), "TaskFailed");
    EXPECT_EQ(error.type(), "FinalError");
    EXPECT_STREQ(error.what(), "card declined");
  }
}

struct CardDeclined : hapax::FinalError {
  using FinalError::FinalError;
};
struct OutOfPaper : std::runtime_error {
  using runtime_error::runtime_error;
};

TEST_P(AppTest, AnErrorHasTheNameOfItsClass) {
  app_.task("charge", []() -> int { throw CardDeclined("no funds"); });
  app_.task("print", []() -> int { throw OutOfPaper("tray 2"); });
  const auto type_of = [](const hapax::AnyHandle& handle) {
    try {
      handle.result_json();
    } catch (const hapax::TaskFailed& error) {
      return error.type();
    }
    return std::string("none");
  };
  const auto charge = app_.submit("charge", nullptr), print = app_.submit("print", nullptr, {.max_attempts = 1});
  work();
  EXPECT_TRUE(type_of(charge).ends_with("CardDeclined")) << type_of(charge);
  EXPECT_TRUE(type_of(print).ends_with("OutOfPaper")) << type_of(print);
}

TEST_P(AppTest, AHandlerHearsThatItsTimeIsOver) {
  app_.task("endless", [](hapax::TaskContext& context) {
    while (!context.cancel_requested()) std::this_thread::sleep_for(1ms);
    throw hapax::Cancelled();
  });
  const auto handle = app_.submit("endless", nullptr, {.max_attempts = 1, .timeout = 50ms});
  work({.lease = 60s, .until_idle_for = 100ms});  // no heartbeat comes in time to say so
  EXPECT_TRUE(handle.wait_for(20s));
  EXPECT_EQ(handle.status(), "timed_out");
}

TEST_P(AppTest, StopReachesEveryWorkerOfTheApp) {
  std::latch both(3);
  app_.task("meet", [&] { both.arrive_and_wait(); });
  app_.task("nothing", [] {});
  app_.submit("meet", nullptr);
  app_.submit("meet", nullptr);
  {
    std::jthread first([&] { app_.work({.threads = 1}); }), second([&] { app_.work({.threads = 1}); });
    both.arrive_and_wait();
    app_.stop();
  }
  const auto later = app_.submit("nothing", nullptr);
  work();
  EXPECT_EQ(later.status(), "completed") << "the stop was taken back when the last of them returned";
}

TEST_P(AppTest, TheEffectKeyIsTheSameForEveryAttempt) {
  std::mutex mutex;
  std::vector<std::string> keys;
  app_.task("effect", [&](hapax::TaskContext& context) {
    const std::lock_guard lock(mutex);
    keys.push_back(context.effect_key());
    if (context.attempt() == 1) throw std::runtime_error("once more");
  });
  app_.submit("effect", nullptr, {.retry = {.initial = 1ms}});
  work({.until_idle_for = 200ms});
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], keys[1]);
}

TEST_P(AppTest, AHandlerHearsOfACancel) {
  std::latch started(1);
  app_.task("long", [&](hapax::TaskContext& context) {
    started.count_down();
    while (!context.cancel_requested()) std::this_thread::yield();
    throw hapax::Cancelled();
  });
  const auto handle = app_.submit("long", nullptr);
  std::jthread worker([&] { work({.lease = 1s, .until_idle_for = 300ms}); });
  started.wait();
  EXPECT_TRUE(handle.cancel("request-1"));
  EXPECT_TRUE(handle.wait_for(20s));
  EXPECT_EQ(handle.status(), "cancelled");
  EXPECT_TRUE(handle.cancel("request-1")) << "the same request again is the same answer";
  EXPECT_FALSE(handle.cancel("request-2"));
}

TEST_P(AppTest, ABatchIsAnsweredItemByItem) {
  const auto handles =
      app_.submit_batch({hapax::BatchItem::of("t", 1, hapax::key("k")), hapax::BatchItem::of("t", 1, hapax::key("k")),
                         hapax::BatchItem::of("t", 2, hapax::key("k"))});
  ASSERT_EQ(handles.size(), 3u);
  EXPECT_TRUE(handles[0].created());
  EXPECT_FALSE(handles[1].created());
  EXPECT_EQ(handles[0].id(), handles[1].id());
  EXPECT_THROW(handles[2].id(), hapax::Error);
}

TEST_P(AppTest, ManyAreUnderWayWithoutAThreadForEach) {
  constexpr int kChains = 16, kTasks = 200;
  std::atomic<int> next = 0, created = 0, found = 0;
  std::latch ended(kChains);
  const std::function<void()> submit_next = [&] {
    const int i = next++;
    if (i >= kTasks) return ended.count_down();
    app_.submit_async("t", i / 2, hapax::key("k" + std::to_string(i / 2)), [&](const hapax::AnyHandle& handle) {
      ++(handle.created() ? created : found);
      submit_next();
    });
  };
  for (int i = 0; i < kChains; ++i) submit_next();
  ended.wait();
  EXPECT_EQ(created, kTasks / 2);
  EXPECT_EQ(found, kTasks / 2);
}

TEST_P(AppTest, WhatIsRefusedWithoutWaitingThrowsWhenItsHandleIsUsed) {
  app_.task("charge_card", charge_card);
  std::promise<hapax::AnyHandle> first, second;
  app_.submit_async(charge_card, Order{1, 2}, hapax::key("k"),
                    [&](hapax::AnyHandle handle) { first.set_value(handle); });
  const hapax::AnyHandle handle = first.get_future().get();
  EXPECT_TRUE(handle.created());
  app_.submit_async(charge_card, Order{1, 3}, hapax::key("k"),
                    [&](hapax::AnyHandle handle) { second.set_value(handle); });
  const hapax::AnyHandle refused = second.get_future().get();
  try {
    refused.id();
    FAIL() << "no conflict";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "IdempotencyConflict");
  }
  EXPECT_THROW(app_.submit_async("t", 1, {.key = std::string(2000, 'k')}, [](const hapax::AnyHandle&) {}),
               hapax::Error);
  work();
  EXPECT_EQ(handle.result<Charge>().reference, "charge-1");
}

TEST_P(AppTest, ClosingAnswersWhatIsUnderWay) {
  constexpr int kTasks = 100;
  std::atomic<int> created = 0, not_known = 0;
  {
    hapax::App closing = hapax::open(place_.url());
    for (int i = 0; i < kTasks; ++i) {
      closing.submit_async("t", i, hapax::key("k" + std::to_string(i)), [&](const hapax::AnyHandle& handle) {
        try {
          created += handle.created();
        } catch (const hapax::Error&) {
          ++not_known;  // a server's answer that nobody waited for
        }
      });
    }
  }
  EXPECT_EQ(created + not_known, kTasks);
  EXPECT_LE(not_known, GetParam() == "http" ? kTasks : 0);
}

TEST_P(AppTest, ManyTasksOverManyThreadsEachRunOnce) {
  constexpr int kTasks = 500;
  std::vector<std::atomic<int>> runs(kTasks);
  app_.task("mark", [&](int n) { ++runs[static_cast<std::size_t>(n)]; });
  std::vector<hapax::BatchItem> items;
  for (int i = 0; i < kTasks; ++i) items.push_back(hapax::BatchItem::of("mark", i));
  const auto handles = app_.submit_batch(items);
  work({.threads = 8});
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  for (const auto& handle : handles) EXPECT_EQ(handle.status(), "completed");
}

TEST_P(AppTest, StopFinishesWhatRuns) {
  std::latch started(1), go(1);
  app_.task("slow", [&] {
    started.count_down();
    go.wait();
    return 7;
  });
  const auto handle = app_.submit("slow", nullptr);
  std::jthread worker([&] { app_.work({.handle_signals = false}); });
  started.wait();
  app_.stop();
  go.count_down();
  worker.join();
  EXPECT_EQ(handle.result<int>(), 7);
}

TEST_P(AppTest, AHandleIsFoundAgainByItsId) {
  const auto handle = app_.submit("t", 1);
  EXPECT_EQ(app_.find(handle.id()).id(), handle.id());
  EXPECT_THROW(app_.find("019bf2d4-0000-7000-8000-000000000000"), hapax::Error);
}

TEST_P(AppTest, AnInputThatDoesNotFitFailsTheTaskWithThePlace) {
  app_.task("charge_card", charge_card);
  const auto handle = app_.submit_json("charge_card", R"({"id":"seven","amount":1})", {.max_attempts = 1});
  work();
  try {
    handle.result<Charge>();
    FAIL() << "it ran";
  } catch (const hapax::TaskFailed& error) {
    EXPECT_STREQ(error.what(), "/id: expected a whole number, got a string");
  }
}

TEST_P(AppTest, AWorkerWithNothingDeclaredSaysSo) { EXPECT_THROW(app_.work(), hapax::Error); }

TEST(AppOverHttp, AWorkerWithAWrongTokenEndsWithTheReason) {
  const auto engine = hapax::start_engine(hapax::open_store("memory:"), {});
  hapax::ServerOptions options;
  options.port = 0;
  options.tokens.push_back({"right", std::nullopt});
  const auto server = hapax::start_server(*engine, options);
  hapax::App app = hapax::open("http://127.0.0.1:" + std::to_string(server->port()), {.token = "wrong"});
  app.task("t", [] {});
  try {
    app.work({.handle_signals = false});
    FAIL() << "it worked";
  } catch (const hapax::Error& error) {
    EXPECT_EQ(error.code(), "Unauthorized");
  }
}

INSTANTIATE_TEST_SUITE_P(Urls, AppTest, ::testing::Values("memory", "sqlite", "http"),
                         [](const auto& info) { return info.param; });

// ---- in the caller's own transaction

class OwnTransactionTest : public ::testing::Test {
 protected:
  OwnTransactionTest() {
    sqlite3_open(path_.c_str(), &connection_);
    sqlite3_busy_timeout(connection_, 10'000);  // the app writes, too
  }
  ~OwnTransactionTest() override { sqlite3_close(connection_); }

  void exec(const char* sql) { ASSERT_EQ(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql; }

  hapax::TempDir dir_;
  std::string path_ = (dir_.path() / "app.db").string();
  hapax::App app_ = hapax::open("sqlite:" + path_);
  sqlite3* connection_ = nullptr;
};

TEST_F(OwnTransactionTest, TheTaskExistsIfTheCallerCommits) {
  exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)");
  exec("BEGIN");
  exec("INSERT INTO orders VALUES (456)");
  const auto handle = app_.submit_in(connection_, "charge_card", Order{456, 1}, hapax::key("k"));
  EXPECT_TRUE(handle.created());
  EXPECT_THROW(app_.find(handle.id()), hapax::Error);
  exec("COMMIT");
  EXPECT_EQ(app_.find(handle.id()).status(), "pending");
}

TEST_F(OwnTransactionTest, AndDoesNotIfTheCallerRollsBack) {
  exec("BEGIN");
  const auto handle = app_.submit_in(connection_, "charge_card", Order{456, 1}, hapax::key("k"));
  exec("ROLLBACK");
  EXPECT_THROW(app_.find(handle.id()), hapax::Error);
  EXPECT_TRUE(app_.submit("charge_card", Order{456, 1}, hapax::key("k")).created());
}

TEST_F(OwnTransactionTest, WaitsForOthersThatWrite) {
  sqlite3* other = nullptr;
  sqlite3_open(path_.c_str(), &other);
  sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  exec("BEGIN");
  std::jthread commits([&] {
    std::this_thread::sleep_for(50ms);
    sqlite3_exec(other, "CREATE TABLE theirs (id INTEGER); COMMIT", nullptr, nullptr, nullptr);
  });
  const auto handle = app_.submit_in(connection_, "charge_card", Order{456, 1});
  exec("COMMIT");
  EXPECT_EQ(app_.find(handle.id()).status(), "pending");
  commits.join();
  sqlite3_close(other);
}

TEST_F(OwnTransactionTest, SaysHowToBeginOneThatHasReadWhatIsOldByNow) {
  exec("BEGIN");
  exec("SELECT * FROM sqlite_schema");
  app_.submit("charge_card", Order{1, 1});
  try {
    app_.submit_in(connection_, "charge_card", Order{456, 1});
    FAIL();
  } catch (const hapax::Error& error) {
    EXPECT_NE(std::string(error.what()).find("begin it with BEGIN IMMEDIATE"), std::string::npos) << error.what();
    EXPECT_TRUE(error.safe_to_retry());
  }
  exec("ROLLBACK");
  exec("BEGIN IMMEDIATE");
  EXPECT_TRUE(app_.submit_in(connection_, "charge_card", Order{456, 1}).created());
  exec("COMMIT");
}

TEST_F(OwnTransactionTest, ADuplicateIsFoundThereToo) {
  const auto first = app_.submit("charge_card", Order{456, 1}, hapax::key("k"));
  exec("BEGIN");
  const auto second = app_.submit_in(connection_, "charge_card", Order{456, 1}, hapax::key("k"));
  exec("COMMIT");
  EXPECT_FALSE(second.created());
  EXPECT_EQ(first.id(), second.id());
}

TEST_F(OwnTransactionTest, AWaitingWorkerHearsOfTheCommit) {
  app_.task("charge_card", charge_card);
  std::jthread worker([&] { app_.work({.handle_signals = false, .until_idle_for = 20s}); });
  exec("BEGIN IMMEDIATE");  // the worker announces itself meanwhile
  const auto handle = app_.submit_in(connection_, "charge_card", Order{456, 1});
  exec("COMMIT");
  EXPECT_EQ(handle.result<Charge>().reference, "charge-456");
  app_.stop();
}

TEST_F(OwnTransactionTest, WithoutATransactionItIsRefused) {
  EXPECT_THROW(app_.submit_in(connection_, "charge_card", Order{456, 1}), hapax::Error);
}

TEST_F(OwnTransactionTest, AnotherFileIsRefused) {
  sqlite3* other = nullptr;
  sqlite3_open((dir_.path() / "other.db").c_str(), &other);
  sqlite3_exec(other, "BEGIN; CREATE TABLE t (x)", nullptr, nullptr, nullptr);
  EXPECT_THROW(app_.submit_in(other, "charge_card", Order{456, 1}), hapax::Error);
  sqlite3_close(other);
}

TEST_P(AppTest, HeadersReachTheHandlerAndTheStepsOfAWorkflow) {
  using Headers = std::map<std::string, std::string>;
  const Headers sent{{"traceparent", "00-1-2-01"}, {"tenant", "\u00fc"}};
  std::vector<Headers> seen;
  std::mutex mutex;
  app_.task("look", [&](hapax::TaskContext& context) {
    const std::lock_guard lock(mutex);
    seen.push_back(context.headers());
    return 1;
  });
  app_.workflow("flow", [](hapax::Context& ctx) { return ctx.run<int>("look"); });
  app_.submit("look", nullptr, {.headers = sent, .tags = {"blue"}});
  app_.submit("look", nullptr, {});
  app_.start("flow", "w", nullptr, {.headers = sent});
  work();
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<Headers>{{}, sent, sent}));
}

}  // namespace
