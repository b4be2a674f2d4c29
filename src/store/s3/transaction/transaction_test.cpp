#include "store/s3/transaction/transaction.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/s3/memory_objects.h"
#include "support/manual_clock.h"

namespace hapax::s3 {
namespace {

using namespace std::chrono_literals;

struct Crash {};

const std::string kOld = R"({"v":"old"})", kNew = R"({"v":"new"})";

class Transactions : public testing::Test {
 protected:
  Transactions() {
    for (const char* name : {"a", "b", "read"}) objects_.put(Put{name, seal(kOld), std::nullopt});
  }

  static bool change_all(ObjectStore& objects) {
    Bucket bucket(objects);
    Transaction transaction(bucket);
    transaction.read("read");
    for (const char* name : {"a", "b", "new"}) transaction.write(name, kNew);
    transaction.create("made", kNew);
    transaction.add_hint("hint/new");
    transaction.drop_hint("hint/old");
    return transaction.commit();
  }

  // As a reader sees them; nothing is "".
  std::string seen(const std::string& name) {
    Bucket bucket(objects_);
    return bucket.look({&name, 1}).front().content;
  }
  std::string taken(const std::string& name) {
    Bucket bucket(objects_);
    return bucket.take({&name, 1}).front().content;
  }

  void crash_after(int requests) {
    left_ = requests;
    objects_.on_requests({}, [this](const ObjectRequest&) {
      if (--left_ == 0) throw Crash();
    });
  }

  ManualClock clock_;
  MemoryObjects objects_{clock_};
  int left_ = 0;
};

TEST_F(Transactions, ChangeAllObjectsAndLeaveNothingBehind) {
  ASSERT_TRUE(change_all(objects_));
  for (const char* name : {"a", "b", "new", "made"}) EXPECT_EQ(seen(name), kNew) << name;
  EXPECT_EQ(objects_.names("transactions/").size(), 0u);
  EXPECT_EQ(objects_.names("hint/"), std::vector<std::string>{"hint/new"});
}

TEST_F(Transactions, OneObjectIsOneConditionalPut) {
  Bucket bucket(objects_);
  Transaction transaction(bucket);
  transaction.write("a", kNew);
  objects_.reset_counts();
  ASSERT_TRUE(transaction.commit());
  EXPECT_EQ(objects_.counts(), (std::map<ObjectRequest::Verb, int>{{ObjectRequest::Verb::put, 1}}));
}

TEST_F(Transactions, SomebodyWhoWasFasterWins) {
  Bucket bucket(objects_);
  Transaction slow(bucket);
  slow.write("a", R"({"v":"slow"})");
  slow.write("b", R"({"v":"slow"})");
  ASSERT_TRUE(change_all(objects_));
  EXPECT_FALSE(slow.commit());
  EXPECT_EQ(taken("a"), kNew);
  EXPECT_EQ(taken("b"), kNew);
}

TEST_F(Transactions, WhatWasOnlyReadMustStillBeTheSame) {
  Bucket bucket(objects_);
  Transaction transaction(bucket);
  transaction.read("read");
  transaction.write("a", kNew);
  const auto object = objects_.get("read");
  objects_.put(Put{"read", seal(kNew), object->etag});
  EXPECT_FALSE(transaction.commit());
  EXPECT_EQ(taken("a"), kOld);
}

// Whatever request was the last one, a second actor finds all or nothing, and nobody is stuck.
TEST_F(Transactions, CrashAfterEachRequestLeavesAllOrNothing) {
  int committed = 0, n = 1;
  for (bool crashed = true; crashed; ++n) {
    SCOPED_TRACE("crash after request " + std::to_string(n));
    ManualClock clock;
    MemoryObjects objects(clock);
    for (const char* name : {"a", "b", "read"}) objects.put(Put{name, seal(kOld), std::nullopt});
    int left = n;
    objects.on_requests({}, [&](const ObjectRequest&) {
      if (--left == 0) throw Crash();
    });
    crashed = false;
    try {
      change_all(objects);
    } catch (const Crash&) {
      crashed = true;
    }
    objects.on_requests({}, {});
    Bucket reader(objects);
    const std::vector<std::string> names{"a", "b", "new", "made"};
    const auto before = reader.look(std::span(names).first(3));
    clock.advance(1min);
    Bucket bucket(objects);
    const auto found = bucket.take(names);
    const bool done = found[0].content == kNew;
    committed += done ? 1 : 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(found[i].content, done ? kNew : i < 2 ? kOld : "") << names[i];
      EXPECT_TRUE(i == 3 || before[i].content == found[i].content) << names[i];
    }
    EXPECT_TRUE(change_all(objects));
    EXPECT_EQ(bucket.take(names)[3].content, kNew);
  }
  EXPECT_GT(n, 10);
  EXPECT_GT(committed, 3);
}

// The second actor comes while the first one is stopped in the middle, and the first one then goes on.
TEST_F(Transactions, ASecondActorInTheMiddleOfTheFirst) {
  for (int n = 1; n <= 12; ++n) {
    SCOPED_TRACE("second actor after request " + std::to_string(n));
    ManualClock clock;
    MemoryObjects objects(clock);
    for (const char* name : {"a", "b", "read"}) objects.put(Put{name, seal(kOld), std::nullopt});
    int left = n;
    std::string between;
    objects.on_requests({}, [&](const ObjectRequest&) {
      if (--left != 0) return;
      clock.advance(1min);
      Bucket bucket(objects);
      const std::vector<std::string> names{"a", "b"};
      const auto found = bucket.take(names);
      EXPECT_EQ(found[0].content, found[1].content);
      between = found[0].content;
    });
    const bool committed = change_all(objects);
    objects.on_requests({}, {});
    Bucket bucket(objects);
    const std::vector<std::string> names{"a", "b", "new", "made"};
    const auto after = bucket.take(names);
    EXPECT_EQ(after[0].content, committed ? kNew : kOld);
    for (std::size_t i = 1; i < names.size(); ++i) EXPECT_EQ(after[i].content, committed ? kNew : i == 1 ? kOld : "");
    EXPECT_TRUE(committed || between != kNew);
  }
}

TEST_F(Transactions, ManyAtOnceOnTheSameObjectsAreOneAfterTheOther) {
  constexpr int kThreads = 8, kRounds = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        for (int tried = 0;; ++tried) {
          Bucket bucket(objects_);
          Transaction transaction(bucket);
          const auto number = [&](const std::string& name) {
            const Found& found = transaction.read(name);
            return found.content == kOld ? 0 : std::stoi(parse_json(found.content).find("n")->text);
          };
          const int a = number("a"), b = number("b");
          transaction.write("a", "{\"n\":" + std::to_string(a + 1) + "}");
          transaction.write("b", "{\"n\":" + std::to_string(b + 1) + "}");
          if (transaction.commit()) {
            EXPECT_EQ(a, b);
            break;
          }
          pause_before_try(tried);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken("a"), "{\"n\":" + std::to_string(kThreads * kRounds) + "}");
  EXPECT_EQ(taken("b"), taken("a"));
}

}  // namespace
}  // namespace hapax::s3
