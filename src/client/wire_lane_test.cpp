#include "client/wire_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "core/field.h"

namespace hapax {
namespace {

using testing::ElementsAre;

// Sends texts to nobody: answers each with its length, and keeps what went together.
class FakeServer {
 public:
  WireLane<std::string, std::size_t>::Verb verb() {
    return {.write =
                [](const std::string& text) {
                  if (text == "unwritable") throw InvalidField("", "cannot be written");
                  return text;
                },
            .send = [this](auto items) { return answer(items); },
            .go_together = [](const std::string& a, const std::string& b) { return a.front() == b.front(); }};
  }

  // The next request waits for release().
  void hold() { gate_ = held_.get_future(); }
  void release() { held_.set_value(); }
  void await_request() { arrived_.get_future().wait(); }

  std::vector<std::vector<std::string>> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  std::vector<std::size_t> answer(std::span<const Written<std::string>> items) {
    std::vector<std::string> texts;
    for (const auto& item : items) texts.push_back(item.text);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(texts);
      if (requests_.size() == 1) arrived_.set_value();
    }
    if (gate_.valid()) std::exchange(gate_, {}).wait();
    std::vector<std::size_t> lengths;
    for (const std::string& text : texts) {
      if (text == "bad") throw InvalidField("/items", "is bad");
      if (text == "busy") throw Failure(Failure::Code::unavailable, "the server is busy");
      lengths.push_back(text.size());
    }
    return lengths;
  }

  std::mutex mutex_;
  std::vector<std::vector<std::string>> requests_;
  std::promise<void> held_, arrived_;
  std::future<void> gate_;
};

struct WireLaneTest : testing::Test {
  using Lane = WireLane<std::string, std::size_t>;
  FakeServer server;
  std::optional<Lane> lane{std::in_place, server.verb(), 1};

  void limit(LaneLimits limits) { lane.emplace(server.verb(), 1, limits); }

  std::future<std::vector<std::size_t>> put(std::vector<std::string> texts) {
    auto promise = std::make_shared<std::promise<std::vector<std::size_t>>>();
    lane->put(std::move(texts), [promise](Answer<std::vector<std::size_t>> answer) {
      try {
        promise->set_value(std::move(answer).get());
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
    return promise->get_future();
  }
};

TEST_F(WireLaneTest, WhatArrivesWhileARequestIsUnderWayGoesTogether) {
  server.hold();
  auto first = put({"a"});
  server.await_request();
  auto second = put({"ab"}), third = put({"abc", "a"});
  server.release();
  EXPECT_THAT(first.get(), ElementsAre(1U));
  EXPECT_THAT(second.get(), ElementsAre(2U));
  EXPECT_THAT(third.get(), ElementsAre(3U, 1U));
  EXPECT_THAT(server.requests(), ElementsAre(ElementsAre("a"), ElementsAre("ab", "abc", "a")));
}

TEST_F(WireLaneTest, ARefusedItemIsRefusedAlone) {
  server.hold();
  auto first = put({"b"});
  server.await_request();
  auto good = put({"bb"}), bad = put({"bad"});
  server.release();
  first.get();
  EXPECT_THAT(good.get(), ElementsAre(2U));
  EXPECT_THROW(bad.get(), InvalidField);
}

TEST_F(WireLaneTest, AFailureIsTheAnswerToAllThatWentTogether) {
  server.hold();
  auto first = put({"b"});
  server.await_request();
  auto good = put({"bb"}), busy = put({"busy"});
  server.release();
  first.get();
  EXPECT_THROW(good.get(), Failure);
  EXPECT_THROW(busy.get(), Failure);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(WireLaneTest, ARequestIsBoundedInBytes) {
  const std::string large(300'000, 'x'), huge(2'000'000, 'x');
  EXPECT_EQ(put({large, large, huge, "x"}).get().size(), 4U);
  EXPECT_THAT(server.requests(),
              ElementsAre(ElementsAre(large), ElementsAre(large), ElementsAre(huge), ElementsAre("x")));
}

TEST_F(WireLaneTest, ARequestIsBoundedInItems) {
  EXPECT_EQ(put(std::vector<std::string>(2500, "x")).get().size(), 2500U);
  std::vector<std::size_t> sizes;
  for (const auto& request : server.requests()) sizes.push_back(request.size());
  EXPECT_THAT(sizes, ElementsAre(1000U, 1000U, 500U));
}

TEST_F(WireLaneTest, WhatWaitsForAServerThatHangsIsBoundedInBytes) {
  limit({.bytes = 4000});
  server.hold();
  auto sent = put({"a"});
  server.await_request();
  auto waiting = put({"first"}), refused = put({std::string(4000, 'x')});
  EXPECT_THROW(refused.get(), Failure);
  server.release();
  EXPECT_THAT(sent.get(), ElementsAre(1U));
  EXPECT_THAT(waiting.get(), ElementsAre(5U));
}

TEST_F(WireLaneTest, WhatWaitedTooLongIsNotSent) {
  limit({.timeout = Duration(0)});
  server.hold();
  auto sent = put({"a"});
  server.await_request();
  auto late = put({"b"});
  server.release();
  EXPECT_THAT(sent.get(), ElementsAre(1U));
  EXPECT_THROW(late.get(), Failure);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(WireLaneTest, WhatDoesNotGoTogetherIsAnsweredInOrder) {
  EXPECT_THAT(put({"a", "bb", "ccc", "cccc"}).get(), ElementsAre(1U, 2U, 3U, 4U));
  EXPECT_THAT(server.requests(), ElementsAre(ElementsAre("a"), ElementsAre("bb"), ElementsAre("ccc", "cccc")));
}

TEST_F(WireLaneTest, WhatCannotBeWrittenIsAnsweredAndNotSent) {
  EXPECT_THROW(put({"a", "unwritable"}).get(), InvalidField);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WireLaneTest, NothingIsAnsweredAtOnce) {
  EXPECT_TRUE(put({}).get().empty());
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace hapax
