// A server that does not answer: every call ends by its deadline, and says whether its outcome is known.
#include <gmock/gmock.h>

#include <chrono>
#include <future>

#include "store/postgres/postgres_store.h"
#include "support/postgres_server.h"
#include "support/task.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using Instant = std::chrono::steady_clock::time_point;

constexpr Duration kTimeout{300};
constexpr auto kSoon = 20s;  // far beyond any deadline here, for machines that are busy

ListFilter all_in(std::string name_space) {
  ListFilter filter;
  filter.name_space = std::move(name_space);
  return filter;
}

// A server of the test's own: the shared one is not to be frozen.
class FrozenPostgres : public testing::Test {
 protected:
  ~FrozenPostgres() override { server_.thaw(); }

  std::unique_ptr<Store> open(Duration timeout) {
    PostgresOptions options;
    options.url = url_;
    options.timeout = timeout;
    return open_postgres_store(options);
  }

  static std::optional<Failure::Code> code_of(const std::function<void()>& verb) {
    try {
      verb();
    } catch (const Failure& failure) {
      return failure.code();
    }
    return std::nullopt;
  }

  static std::string said_to_clients(const std::function<void()>& verb) {
    try {
      verb();
    } catch (const Failure& failure) {
      return failure.for_clients();
    }
    return "";
  }

  PostgresServer server_;
  const std::string url_ = server_.create_database();
};

TEST_F(FrozenPostgres, EveryCallEndsByItsDeadlineAndSaysWhetherItsOutcomeIsKnown) {
  const auto store = open(kTimeout);
  const Submission first = Task().key("k");
  store->submit({&first, 1});
  server_.freeze();
  const Instant began = std::chrono::steady_clock::now();
  const Submission task = Task().key("k2");
  EXPECT_EQ(code_of([&] { store->submit({&task, 1}); }), Failure::Code::outcome_unknown) << "the commit was sent";
  EXPECT_EQ(code_of([&] { store->list(all_in("default")); }), Failure::Code::unavailable);
  EXPECT_EQ(code_of([&] { store->submit({&task, 1}); }), Failure::Code::unavailable) << "there is no connection";
  EXPECT_EQ(code_of([&] { store->check(); }), Failure::Code::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - began, kSoon);
  server_.thaw();
  for (;;) {
    try {
      EXPECT_EQ(store->submit({&task, 1}).at(0).kind, SubmitOutcome::Kind::created) << "sent again under its id";
      break;
    } catch (const Failure& failure) {
      ASSERT_TRUE(failure.safe_to_retry()) << failure.what();
    }
  }
  EXPECT_EQ(store->list(all_in("default")).size(), 2u);
}

TEST_F(FrozenPostgres, ClientsAreToldThatTheDatabaseDidNotAnswer) {
  const auto store = open(kTimeout);
  server_.freeze();
  const Submission task = Task().key("k");
  const std::string silent = "The database did not answer within the deadline.";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(said_to_clients([&] { store->submit({&task, 1}); }), silent) << i;
  EXPECT_EQ(said_to_clients([&] { store->list(all_in("default")); }), silent);
}

// Larger than what the sockets take: a call that only sends must not wait for good either.
TEST_F(FrozenPostgres, LargeSubmissionEndsByItsDeadline) {
  const auto store = open(kTimeout);
  server_.freeze();
  const Submission large = Task().input("\"" + std::string(32 << 20, 'x') + "\"");
  EXPECT_TRUE(code_of([&] { store->submit({&large, 1}); }).has_value());
}

TEST_F(FrozenPostgres, EarlierDeadlineOfTheCallerHolds) {
  const auto store = open(1h);
  server_.freeze();
  const CallDeadline deadline(kTimeout);
  const Submission task = Task();
  EXPECT_TRUE(code_of([&] { store->submit({&task, 1}); }).has_value());
}

TEST_F(FrozenPostgres, CallsBeyondTheConnectionsEndByTheirDeadlines) {
  const auto store = open(kTimeout);
  server_.freeze();
  std::vector<std::future<std::optional<Failure::Code>>> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return code_of([&] { store->check(); }); }));
  }
  for (auto& call : calls) EXPECT_TRUE(call.get().has_value());
}

TEST_F(FrozenPostgres, InterruptedCallsEndAtOnce) {
  auto store = open(1h);
  store->watch([] {});
  server_.freeze();
  std::vector<std::future<std::optional<Failure::Code>>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return code_of([&] { store->check(); }); }));
  }
  EXPECT_EQ(calls.front().wait_for(50ms), std::future_status::timeout);
  store->interrupt();
  for (auto& call : calls) EXPECT_TRUE(call.get().has_value());
  EXPECT_TRUE(code_of([&] { store->check(); }).has_value());
  store.reset();
}

TEST_F(FrozenPostgres, HostThatDoesNotAnswerLeavesTimeForTheNext) {
  PostgresServer other;
  const std::string database = other.create_database();
  PostgresOptions options;
  options.url = "postgres://postgres@127.0.0.1:" + std::to_string(server_.port()) +
                ",127.0.0.1:" + std::to_string(other.port()) + database.substr(database.rfind('/')) +
                "?connect_timeout=2";
  server_.freeze();
  EXPECT_NO_THROW(open_postgres_store(options)->check());
}

}  // namespace
}  // namespace hapax
