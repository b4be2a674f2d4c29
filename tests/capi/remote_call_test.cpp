// Calls through the C ABI to a server.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "capi/capi_app.h"
#include "capi/remote_place.h"

namespace hapax::capi_testing {

namespace {

constexpr const char* kTask = R"({"type":"charge","idempotency_key":"charge-1"})";
constexpr const char* kClaim = R"({"worker":"w","queues":["default"],"wait":"20s"})";

TEST(CapiRemote, ACallIsAnsweredAsWithinTheProcess) {
  RemotePlace place;
  CapiApp app(place.url());
  app.call(7, "POST", "/v1/tasks", kTask);
  const Answer first = app.next();
  EXPECT_EQ(first.token, 7U);
  EXPECT_EQ(first.status, 201);
  const std::string id = first.text("/execution/id");
  EXPECT_EQ(parse_json(first.headers).find("Location")->text, "/v1/tasks/" + id);
  EXPECT_EQ(parse_json(first.headers).find("Content-Type")->text, "application/json");
  const Answer again = app.call_wait("POST", "/v1/tasks", kTask);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(parse_json(again.headers).find("Idempotency-Replayed")->text, "true");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask, R"({"Hapax-Namespace":"other"})").status, 201);
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks/" + id).text("/type"), "charge");
  EXPECT_EQ(app.call_wait("HEAD", "/openapi.json").body, "");
  EXPECT_EQ(app.call_wait("PUT", "/v1/queues/q", R"({"max_running":2})").status, 200);
  EXPECT_EQ(app.call_wait("DELETE", "/v1/tasks").status, 405);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", R"({"type":1})").text("/pointer"), "/type");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", "{}", R"({"Content-Type":"text/plain"})").status, 415);
}

TEST(CapiRemote, TheTokenAndNamespaceOfTheOptionsAreSent) {
  const RemotePlace place("secret");
  EXPECT_EQ(CapiApp(place.url()).call_wait("GET", "/v1/tasks").status, 401);
  CapiApp app(place.url(), R"({"token":"secret","namespace":"shop"})");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask).status, 201);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask, R"({"hapax-namespace":"shop"})").status, 200);
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks", "", R"({"Authorization":"Bearer wrong"})").status, 401);
}

TEST(CapiRemote, WhatCannotBeSentIsNot) {
  RemotePlace place;
  CapiApp app(place.url());
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks", "", R"({"Accept":"a\r\nX: b"})").error(), "InvalidCall");
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks", "", R"({"A: b":"c"})").error(), "InvalidCall");
  EXPECT_EQ(app.call_wait("GET", "/v1/\ntasks").error(), "InvalidCall");
  EXPECT_EQ(app.call_wait("GE\nT", "/v1/tasks").error(), "InvalidCall");
}

TEST(CapiRemote, AServerThatIsAwayIsSaidToBe) {
  RemotePlace place;
  CapiApp app(place.url());
  EXPECT_EQ(app.call_wait("GET", "/health").status, 200);
  place.stop();
  const Answer away = app.call_wait("GET", "/health");
  EXPECT_EQ(away.status, 0);
  EXPECT_EQ(away.error(), "StoreUnavailable");
  EXPECT_TRUE(away.json().find("safe_to_retry")->boolean);
}

TEST(CapiRemote, CancellingEndsALongPoll) {
  RemotePlace place;
  CapiApp app(place.url());
  app.call(1, "POST", "/v1/claims", kClaim);
  EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 50));
  hapax_cancel(app.get(), 1);
  const Answer ended = app.next();
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.error(), "Cancelled");
  EXPECT_EQ(app.call_wait("POST", "/v1/claims", kClaim, nullptr, 10).error(), "Timeout");
}

TEST(CapiRemote, MoreCallsThanConnectionsAreAllAnswered) {
  RemotePlace place;
  CapiApp app(place.url());
  constexpr std::uint64_t kCalls = 600;
  for (std::uint64_t token = 1; token <= kCalls; ++token) app.call(token, "POST", "/v1/tasks", kTask);
  std::set<std::uint64_t> tokens;
  std::map<int, int> statuses;
  while (tokens.size() < kCalls) {
    const Answer answer = app.next();
    tokens.insert(answer.token);
    ++statuses[answer.status];
  }
  EXPECT_EQ(statuses[201], 1);
  EXPECT_EQ(statuses[200], static_cast<int>(kCalls) - 1);
}

TEST(CapiRemote, ClosingAnswersEveryCallThatIsUnderWay) {
  RemotePlace place;
  char* error = nullptr;
  hapax_app* app = hapax_open(place.url().c_str(), nullptr, &error);
  ASSERT_NE(app, nullptr) << error;
  hapax_queue* queue = hapax_queue_new(app);
  const std::string claim = kClaim, task = kTask;
  constexpr std::uint64_t kCalls = 400;
  for (std::uint64_t token = 1; token <= kCalls; ++token) {
    const bool waits = token % 10 == 0;
    const std::string& body = waits ? claim : task;
    hapax_call(app, queue, token, "POST", waits ? "/v1/claims" : "/v1/tasks", nullptr, body.data(), body.size());
  }
  hapax_close(app);
  std::size_t answered = 0;
  hapax_completion completion;
  while (hapax_queue_drain(queue, &completion, 1) == 1) {
    const Answer answer = take(completion);
    ++answered;
    EXPECT_TRUE(answer.status == 200 || answer.status == 201 || answer.error() == "Cancelled") << answer.body;
  }
  EXPECT_EQ(answered, kCalls);
  hapax_queue_free(queue);
}

}  // namespace

}  // namespace hapax::capi_testing
