// The client of a bucket, against a real server, and through a proxy that does to requests what networks do.
#include "store/s3/client/s3_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "core/failure.h"
#include "support/fault_proxy.h"
#include "support/s3_server.h"

namespace hapax {
namespace {

using Fault = FaultProxy::Fault;

S3ObjectsOptions impatient() {
  S3ObjectsOptions options;
  options.first_pause = Duration(1);
  options.longest_pause = Duration(20);
  options.tries = 10;
  return options;
}

Put create(std::string name, std::string body) { return {std::move(name), std::move(body), {}}; }

Put replace(std::string name, std::string body, Etag replaces) {
  return {std::move(name), std::move(body), std::move(replaces)};
}

Failure::Code failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.code();
  }
  throw std::logic_error("it did not fail");
}

class S3ObjectsTest : public testing::Test {
 protected:
  S3Objects objects_{S3Server::shared().fresh_address(), impatient()};
};

TEST_F(S3ObjectsTest, GivesBackWhatWasPut) {
  EXPECT_FALSE(objects_.get("a"));
  const PutOutcome written = objects_.put(create("a", "first"));
  ASSERT_TRUE(written.written);
  const auto found = objects_.get("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "a");
  EXPECT_EQ(found->body, "first");
  EXPECT_EQ(found->etag, written.etag);
  EXPECT_EQ(found->etag.find('"'), std::string::npos);
}

TEST_F(S3ObjectsTest, CreatesOnlyWhatIsNotThere) {
  ASSERT_TRUE(objects_.put(create("a", "first")).written);
  EXPECT_FALSE(objects_.put(create("a", "second")).written);
  EXPECT_EQ(objects_.get("a")->body, "first");
}

TEST_F(S3ObjectsTest, ReplacesOnlyTheVersionItNames) {
  const Etag first = objects_.put(create("a", "first")).etag;
  const PutOutcome second = objects_.put(replace("a", "second", first));
  ASSERT_TRUE(second.written);
  EXPECT_FALSE(objects_.put(replace("a", "third", first)).written);
  EXPECT_EQ(objects_.get("a")->body, "second");
  EXPECT_TRUE(objects_.put(replace("a", "third", second.etag)).written);
  EXPECT_FALSE(objects_.put(replace("missing", "x", first)).written);
}

TEST_F(S3ObjectsTest, FindsOutOnceHowTheEndpointWantsItsEtags) {
  Etag etag = objects_.put(create("a", "0")).etag;
  etag = objects_.put(replace("a", "1", etag)).etag;
  const std::int64_t before = objects_.counts().put + objects_.counts().get;
  for (int i = 2; i < 12; ++i) etag = objects_.put(replace("a", std::to_string(i), etag)).etag;
  EXPECT_EQ(objects_.counts().put + objects_.counts().get - before, 10);
}

TEST_F(S3ObjectsTest, RemovesWhatIsThereAndWhatIsNot) {
  objects_.put(create("a", "first"));
  objects_.remove("a");
  EXPECT_FALSE(objects_.get("a"));
  EXPECT_NO_THROW(objects_.remove("a"));
}

TEST_F(S3ObjectsTest, AnswersABatchInItsOrder) {
  std::vector<Put> puts;
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    puts.push_back(create("batch/" + std::to_string(i), "body " + std::to_string(i)));
    names.push_back(puts.back().name);
  }
  objects_.put(create("batch/7", "was here before"));
  const auto written = objects_.put(puts);
  const auto found = objects_.get(names);
  for (std::size_t i = 0; i < puts.size(); ++i) {
    EXPECT_EQ(written[i].written, i != 7);
    ASSERT_TRUE(found[i]);
    EXPECT_EQ(found[i]->body, i == 7 ? "was here before" : puts[i].body);
  }
  EXPECT_TRUE(objects_.get(std::span<const std::string>()).empty());
}

TEST_F(S3ObjectsTest, TakesAnyName) {
  const std::vector<std::string> names{"a b",         "a+b",      "a%20b", "a&b=c?d#e",          "a/../b",
                                       "a//b",        "\"'<>",    "ä€😀",  "a:b;c,d@e$f!g*h(i)", "~.-_",
                                       "back\\slash", "[x]{y}|^`"};
  for (const std::string& name : names) {
    ASSERT_TRUE(objects_.put(create(name, "body of " + name)).written) << name;
    const auto found = objects_.get(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->body, "body of " + name);
  }
  std::vector<std::string> listed;
  for (const Listed& object : objects_.list("", "", 100).objects) listed.push_back(object.name);
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(names));
  EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
  for (const std::string& name : names) objects_.remove(name);
  EXPECT_TRUE(objects_.list("", "", 100).objects.empty());
}

TEST_F(S3ObjectsTest, ListsByPrefixFromWhereItIsTold) {
  std::vector<Put> puts;
  for (char c = 'a'; c <= 'j'; ++c) puts.push_back(create(std::string("x/") + c, "body"));
  puts.push_back(create("y/a", "body"));
  objects_.put(puts);
  const Listing first = objects_.list("x/", "", 4);
  ASSERT_EQ(first.objects.size(), 4u);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.objects.back().name, "x/d");
  const Listing rest = objects_.list("x/", "x/d", 100);
  ASSERT_EQ(rest.objects.size(), 6u);
  EXPECT_FALSE(rest.more);
  EXPECT_EQ(rest.objects.front().name, "x/e");
  EXPECT_LT(std::chrono::abs(rest.objects.front().modified_at - objects_.now()), std::chrono::minutes(1));
}

TEST_F(S3ObjectsTest, ListsMoreThanOnePage) {
  std::vector<Put> puts;
  for (int i = 0; i < 1200; ++i) puts.push_back(create("n/a%20b+c&<" + std::to_string(10'000 + i), "body"));
  objects_.put(puts);
  const Listing all = objects_.list("n/", "", 5000);
  ASSERT_EQ(all.objects.size(), 1200u);
  EXPECT_EQ(all.objects.back().name, "n/a%20b+c&<11199");
  EXPECT_FALSE(all.more);
  EXPECT_TRUE(objects_.list("n/", "", 1100).more);
  EXPECT_EQ(objects_.list("n/", all.objects[9].name, 5000).objects.size(), 1190u);
}

TEST_F(S3ObjectsTest, LetsOneOfManyWin) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = "race/" + std::to_string(round);
    const auto race = [&](const std::optional<Etag>& replaces) {
      std::atomic<int> winners = 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < 16; ++i) {
        threads.emplace_back([&, i] {
          const std::string body = (replaces ? "replaced by " : "created by ") + std::to_string(i);
          if (objects_.put(Put{name, body, replaces}).written) ++winners;
        });
      }
      for (std::thread& thread : threads) thread.join();
      return winners.load();
    };
    EXPECT_EQ(race({}), 1);
    EXPECT_EQ(race(objects_.get(name)->etag), 1);
  }
}

TEST_F(S3ObjectsTest, TellsTheBucketsTime) {
  const Time before = SystemClock().now();
  const Time now = objects_.now();
  EXPECT_LT(std::chrono::abs(now - before), std::chrono::seconds(5)) << "the server is on this machine";
  EXPECT_GE(objects_.now(), now);
}

TEST_F(S3ObjectsTest, CountsItsRequests) {
  objects_.put(create("a", "x"));
  objects_.put(create("a", "y"));
  objects_.get("a");
  objects_.list("", "", 1);
  objects_.remove("a");
  EXPECT_EQ(objects_.counts().put, 2);
  EXPECT_EQ(objects_.counts().refused, 1);
  EXPECT_EQ(objects_.counts().get, 1);
  EXPECT_EQ(objects_.counts().list, 1);
  EXPECT_EQ(objects_.counts().remove, 1);
  EXPECT_EQ(objects_.counts().failed, 0);
}

TEST(S3Endpoints, AreReachedByHostName) {
  S3Address address = S3Server::shared().fresh_address();
  address.endpoint = "http://localhost:" + std::to_string(S3Server::shared().port());
  address.path_style = false;
  S3Objects objects(address, impatient());
  EXPECT_TRUE(objects.put(create("a b/c", "x")).written);
  EXPECT_EQ(objects.list("", "", 10).objects.size(), 1u);
  address.endpoint = "http://127.0.0.1:" + std::to_string(S3Server::shared().port());
  address.path_style = true;
  EXPECT_EQ(S3Objects(address, impatient()).get("a b/c")->body, "x");
}

TEST(S3Endpoints, AreTrustedOverTlsByTheirCertificateOnly) {
  S3Address address = S3Server::shared().fresh_address();
  address.endpoint = "https://127.0.0.1:" + std::to_string(S3Server::shared().tls_port());
  address.ca_bundle = S3Server::shared().certificate();
  S3Objects trusted(address, impatient());
  EXPECT_TRUE(trusted.put(create("a", "x")).written);
  EXPECT_EQ(trusted.get("a")->body, "x");

  address.ca_bundle = "";
  S3Objects untrusted(address, impatient());
  EXPECT_EQ(failure_of([&] { untrusted.get("a"); }), Failure::Code::misuse);
  EXPECT_EQ(untrusted.counts().get, 1) << "a second time changes nothing";
}

TEST(S3ObjectsRefused, SaysWhatIsWrong) {
  S3Address address = S3Server::shared().fresh_address();
  const auto complaint = [](const S3Address& where) -> std::string {
    try {
      S3Objects(where, impatient()).put(create("a", "x"));
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::misuse);
      return failure.what();
    }
    return "";
  };
  S3Address other = address;
  other.bucket = "no-such-bucket";
  EXPECT_THAT(complaint(other), testing::HasSubstr("there is no such bucket"));
  other = address;
  other.credentials.secret_key = "wrong";
  EXPECT_THAT(complaint(other), testing::HasSubstr("the secret key does not belong"));
  other.credentials.access_key = "nobody";
  EXPECT_THAT(complaint(other), testing::HasSubstr("the access key is not known"));
}

TEST(S3ObjectsRefused, ANobodyIsUnavailable) {
  S3Address address = S3Server::shared().fresh_address();
  address.endpoint = "http://127.0.0.1:1";
  S3ObjectsOptions options = impatient();
  options.tries = 3;
  S3Objects objects(address, options);
  EXPECT_EQ(failure_of([&] { objects.get("a"); }), Failure::Code::unavailable);
  EXPECT_EQ(failure_of([&] { objects.put(create("a", "x")); }), Failure::Code::unavailable) << "it was never sent";
}

class S3Faults : public testing::Test {
 protected:
  FaultProxy proxy_{S3Server::shared().port()};
  S3Objects objects_{S3Server::shared().fresh_address(proxy_.port()), impatient()};
};

constexpr Fault kFaults[] = {Fault::cut_before, Fault::cut_after, Fault::fail_before, Fault::fail_after,
                             Fault::slow_down};

TEST_F(S3Faults, OneFaultAnywhereChangesNoAnswer) {
  int round = 0;
  for (const Fault fault : kFaults) {
    for (int at = 1; at <= 4; ++at) {
      proxy_.follow(FaultProxy::at(at, fault));
      const std::string name = std::to_string(round++);
      const PutOutcome created = objects_.put(create(name, "first"));
      EXPECT_TRUE(created.written);
      const PutOutcome replaced = objects_.put(replace(name, "second", created.etag));
      EXPECT_TRUE(replaced.written);
      const auto found = objects_.get(name);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->body, "second");
      EXPECT_EQ(found->etag, replaced.etag);
      EXPECT_FALSE(objects_.put(create(name, "third")).written);
      EXPECT_FALSE(objects_.put(replace(name, "third", created.etag)).written);
    }
  }
}

TEST_F(S3Faults, ALostAnswerToOnesOwnWriteIsNotTakenForAnothers) {
  proxy_.follow(FaultProxy::at(1, Fault::cut_after));
  EXPECT_TRUE(objects_.put(create("a", "mine")).written);
  EXPECT_EQ(objects_.get("a")->body, "mine");
}

TEST_F(S3Faults, AnothersWriteIsNotTakenForOnesOwn) {
  ASSERT_TRUE(objects_.put(create("a", "theirs")).written);
  proxy_.follow(FaultProxy::at(1, Fault::fail_before));
  EXPECT_FALSE(objects_.put(create("a", "mine")).written);
  EXPECT_EQ(objects_.get("a")->body, "theirs");
}

TEST_F(S3Faults, AnAnswerThatNeverComesIsSettledByReadingBack) {
  S3ObjectsOptions options = impatient();
  options.wire.timeout = Duration(300);
  S3Objects objects(S3Server::shared().fresh_address(proxy_.port()), options);
  proxy_.follow(FaultProxy::at(1, Fault::hold_answer));
  EXPECT_TRUE(objects.put(create("a", "mine")).written);
}

TEST_F(S3Faults, AKeptConnectionThatBreaksIsNoticed) {
  objects_.put(create("a", "first"));
  for (int i = 0; i < 20; ++i) {
    proxy_.follow(FaultProxy::at(1, Fault::cut_after));
    EXPECT_TRUE(objects_.put(create("b" + std::to_string(i), "mine")).written);
    EXPECT_TRUE(objects_.get("b" + std::to_string(i)));
  }
}

TEST_F(S3Faults, AServerThatFailsForGoodLeavesTheOutcomeOpen) {
  S3ObjectsOptions options = impatient();
  options.tries = 4;
  S3Objects objects(S3Server::shared().fresh_address(proxy_.port()), options);
  proxy_.follow([](const auto&) { return Fault::fail_before; });
  EXPECT_EQ(failure_of([&] { objects.put(create("a", "x")); }), Failure::Code::outcome_unknown);
  EXPECT_EQ(failure_of([&] { objects.get("a"); }), Failure::Code::unavailable);
  EXPECT_EQ(failure_of([&] { objects.list("", "", 10); }), Failure::Code::unavailable);
  EXPECT_EQ(proxy_.requests(), 12);
}

TEST_F(S3Faults, AnOutageIsOverForTheCallerSoonAfterItIsOver) {
  using Steady = std::chrono::steady_clock;
  S3Objects objects(S3Server::shared().fresh_address(proxy_.port()));
  objects.get("a");
  constexpr auto kOutage = std::chrono::milliseconds(1500);
  const auto began = Steady::now();
  proxy_.follow([&](const auto&) { return Steady::now() - began < kOutage ? Fault::cut_before : Fault::none; });
  EXPECT_TRUE(objects.put(create("a", "x")).written);
  EXPECT_LT(Steady::now() - began, kOutage + std::chrono::seconds(2));
}

TEST_F(S3Faults, ABucketThatDoesNotAnswerIsGivenUpAtTheDeadline) {
  S3Objects objects(S3Server::shared().fresh_address(proxy_.port()));
  objects.get("a");
  proxy_.follow([](const auto&) { return Fault::hold_answer; });
  const auto began = std::chrono::steady_clock::now();
  {
    const CallDeadline deadline(Duration(300));
    EXPECT_EQ(failure_of([&] { objects.get("a"); }), Failure::Code::unavailable);
    EXPECT_EQ(failure_of([&] { objects.put(create("b", "x")); }), Failure::Code::unavailable) << "it was never sent";
  }
  {
    const CallDeadline deadline(Duration(300));
    EXPECT_EQ(failure_of([&] { objects.put(create("c", "x")); }), Failure::Code::outcome_unknown);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST_F(S3Faults, InterruptedRequestsEndAtOnceAndNoneBeginsAfterThem) {
  proxy_.follow([](const auto&) { return Fault::hold_answer; });
  std::thread caller([&] { EXPECT_EQ(failure_of([&] { objects_.get("a"); }), Failure::Code::unavailable); });
  while (proxy_.requests() == 0) std::this_thread::yield();
  objects_.interrupt();
  caller.join();
  EXPECT_EQ(failure_of([&] { objects_.put(create("b", "x")); }), Failure::Code::unavailable);
}

TEST_F(S3Faults, OneItemsFailureIsToldWhenTheWholeBatchHasEnded) {
  proxy_.follow([](const FaultProxy::Request& request) {
    return request.target.ends_with("/bad") ? Fault::fail_before : Fault::none;
  });
  const std::vector<Put> puts{create("good", "x"), create("bad", "x"), create("fine", "x")};
  EXPECT_EQ(failure_of([&] { objects_.put(puts); }), Failure::Code::outcome_unknown);
  EXPECT_TRUE(objects_.get("good"));
  EXPECT_TRUE(objects_.get("fine"));
}

TEST_F(S3Faults, ManyWritersUnderRandomFaultsNeverShareAWin) {
  S3ObjectsOptions options = impatient();
  options.tries = 40;
  S3Objects objects(S3Server::shared().fresh_address(proxy_.port()), options);
  proxy_.follow(FaultProxy::random(42, 20));
  // A counter that each raises by CAS.
  ASSERT_TRUE(objects.put(create("counter", "0 by nobody")).written);
  constexpr int kThreads = 8, kEach = 15;
  std::mutex mutex;
  std::set<int> won;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int done = 0, tried = 0; done < kEach; ++tried) {
        const auto found = objects.get("counter");
        const int next = std::stoi(found->body) + 1;
        const std::string body = std::to_string(next) + " by " + std::to_string(t) + " at " + std::to_string(tried);
        if (!objects.put(replace("counter", body, found->etag)).written) continue;
        ++done;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(won.insert(next).second) << "two have won " << next;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A win whose answer was lost, and that was overwritten before it was read back, is told as a loss.
  EXPECT_GE(std::stoi(objects.get("counter")->body), kThreads * kEach);
}

}  // namespace
}  // namespace hapax
