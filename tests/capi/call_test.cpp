// Calls through the C ABI, on a store in this process.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "capi/capi_app.h"
#include "support/temp_dir.h"

namespace hapax::capi_testing {

namespace {

constexpr const char* kTask = R"({"type":"charge","input":{"order":1},"idempotency_key":"charge-1"})";

std::string claim_body(const std::string& wait) {
  return R"({"worker":"w","queues":["default"],"wait":")" + wait + R"("})";
}

TEST(CapiCall, SubmitsOnceAndAnswersTheDuplicateWithItsHeaders) {
  CapiApp app;
  app.call(7, "POST", "/v1/tasks", kTask);
  const Answer first = app.next();
  EXPECT_EQ(first.token, 7U);
  EXPECT_EQ(first.kind, HAPAX_ANSWER);
  EXPECT_EQ(first.status, 201) << first.body;
  const std::string id = first.text("/execution/id");
  EXPECT_EQ(parse_json(first.headers).find("Location")->text, "/v1/tasks/" + id);

  app.call(8, "POST", "/v1/tasks", kTask);
  const Answer again = app.next();
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.text("/execution/id"), id);
  EXPECT_EQ(parse_json(again.headers).find("Idempotency-Replayed")->text, "true");
  EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 0));
}

TEST(CapiCall, HeadersAreThoseOfTheHttpApi) {
  CapiApp app;
  const std::string plain = R"({"type":"charge"})";
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", plain, R"({"Idempotency-Key":"k"})").status, 201);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", plain, R"({"idempotency-key":"\"k\""})").status, 200);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", plain, R"({"Idempotency-Key":"k","Hapax-Namespace":"b"})").status, 201);
  const Answer problem = app.call_wait("GET", "/v1/tasks/none", "", R"({"Accept":"application/problem+json"})");
  EXPECT_EQ(problem.text("/type").empty(), false);
  EXPECT_EQ(parse_json(problem.headers).find("Content-Type")->text, "application/problem+json");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", plain, R"({"Content-Type":"text/plain"})").status, 415);
}

TEST(CapiCall, TheNamespaceOfTheOptionsHoldsForCallsWithoutOne) {
  CapiApp app("memory:", R"({"namespace":"shop"})");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask).status, 201);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask, R"({"Hapax-Namespace":"shop"})").status, 200);
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask, R"({"Hapax-Namespace":"default"})").status, 201);
}

TEST(CapiCall, EveryRouteIsThereWithItsErrors) {
  CapiApp app;
  EXPECT_EQ(app.call_wait("GET", "/health").status, 200);
  EXPECT_EQ(app.call_wait("GET", "/ready").status, 200);
  EXPECT_EQ(app.call_wait("GET", "/metrics").status, 200);
  EXPECT_EQ(app.call_wait("GET", "/openapi.json").status, 200);
  EXPECT_EQ(app.call_wait("HEAD", "/openapi.json").body, "");
  EXPECT_EQ(app.call_wait("GET", "/v1/nowhere").error(), "RouteNotFound");
  EXPECT_EQ(app.call_wait("DELETE", "/v1/tasks").status, 405);
  EXPECT_EQ(app.call_wait("BREW", "/v1/tasks").status, 405);
  const Answer bad = app.call_wait("POST", "/v1/tasks", R"({"type":"t","priority":"high"})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.text("/pointer"), "/priority");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", "{").error(), "InvalidJson");
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks?limit=0").status, 400);
}

TEST(CapiCall, ALongBodyIsHandledElsewhere) {
  CapiApp app;
  const std::string input(std::size_t{200} * 1024, 'x');
  const Answer created = app.call_wait("POST", "/v1/tasks", R"({"type":"t","input":")" + input + R"("})");
  ASSERT_EQ(created.status, 201);
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks/" + created.text("/execution/id")).text("/input"), input);
}

TEST(CapiCall, WhatIsNoCallIsAnsweredAndDoesNothing) {
  CapiApp app;
  hapax_call(app.get(), app.queue(), 1, nullptr, "/v1/tasks", nullptr, nullptr, 0);
  hapax_call(app.get(), app.queue(), 2, "GET", nullptr, nullptr, nullptr, 0);
  hapax_call(app.get(), app.queue(), 3, "GET", "v1/tasks", nullptr, nullptr, 0);
  hapax_call(app.get(), app.queue(), 4, "GET", "/v1/tasks", "[1]", nullptr, 0);
  hapax_call(app.get(), app.queue(), 5, "GET", "/v1/tasks", R"({"Accept":1})", nullptr, 0);
  hapax_call(app.get(), app.queue(), 6, "GET", "/v1/tasks", "{", nullptr, 0);
  hapax_call(app.get(), app.queue(), 7, "POST", "/v1/tasks", nullptr, nullptr, 5);
  std::set<std::uint64_t> tokens;
  for (const Answer& answer : app.drain()) {
    EXPECT_EQ(answer.status, 0);
    EXPECT_EQ(answer.error(), "InvalidCall") << answer.body;
    tokens.insert(answer.token);
  }
  EXPECT_EQ(tokens.size(), 7U);
  EXPECT_EQ(hapax_call_wait(app.get(), "GET", "/health", nullptr, nullptr, 0, -1, nullptr), 0);
}

TEST(CapiCall, CancellingEndsALongPollAsIfItsTimeWereOver) {
  CapiApp app;
  app.call(1, "POST", "/v1/claims", claim_body("20s"));
  app.call(2, "POST", "/v1/claims", claim_body("20s"));
  EXPECT_FALSE(is_readable(hapax_queue_fd(app.queue()), 20));
  hapax_cancel(app.get(), 1);
  const Answer ended = app.next();
  EXPECT_EQ(ended.token, 1U);
  EXPECT_EQ(ended.status, 200);
  EXPECT_TRUE(ended.json().find("claims")->items.empty());
  hapax_cancel(app.get(), 99);  // there is none
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask).status, 201);
  const Answer handed = app.next();
  EXPECT_EQ(handed.token, 2U);
  EXPECT_EQ(handed.json().find("claims")->items.size(), 1U);
}

TEST(CapiCall, ATimeoutEndsTheWaitAndTheLongPoll) {
  CapiApp app;
  const Answer late = app.call_wait("POST", "/v1/claims", claim_body("20s"), nullptr, 10);
  EXPECT_EQ(late.status, 0);
  EXPECT_EQ(late.error(), "Timeout");
  EXPECT_EQ(app.call_wait("POST", "/v1/tasks", kTask).status, 201);
  const Answer task = app.call_wait("GET", "/v1/tasks");
  EXPECT_EQ(task.text("/executions/0/status"), "pending");  // nobody claimed it
}

TEST(CapiCall, AFullQueueRefusesCallsUntilItIsDrained) {
  CapiApp app("memory:", R"({"max_calls":3})");
  for (std::uint64_t token = 1; token <= 10; ++token) {
    app.call(token, "POST", "/v1/tasks", R"({"type":"t","idempotency_key":"k)" + std::to_string(token) + R"("})");
  }
  std::map<int, int> by_status;
  for (int i = 0; i < 10; ++i) {
    const Answer answer = app.next();
    ++by_status[answer.status];
    EXPECT_EQ(answer.status == 0, answer.token > 3);
    if (answer.status == 0) {
      EXPECT_EQ(answer.error(), "QueueFull");
    }
  }
  EXPECT_EQ(by_status[201], 3);
  EXPECT_EQ(by_status[0], 7);
  EXPECT_EQ(app.call_wait("GET", "/v1/tasks").json().find("executions")->items.size(), 3U);
  app.call(11, "GET", "/health");
  EXPECT_EQ(app.next().status, 200);
}

TEST(CapiCall, ClosingAnswersEveryCallThatIsUnderWay) {
  const TempDir folder;
  hapax_queue* queue = nullptr;
  std::map<std::uint64_t, int> statuses;
  constexpr std::uint64_t kCalls = 400;
  {
    char* error = nullptr;
    hapax_app* app = hapax_open(("sqlite:" + folder.file("a.db")).c_str(), nullptr, &error);
    ASSERT_NE(app, nullptr) << error;
    queue = hapax_queue_new(app);
    const std::string wait = claim_body("20s");
    std::thread other([&] {
      for (std::uint64_t token = 1; token <= kCalls; ++token) {
        const std::string body =
            R"({"type":"t","queue":"other","idempotency_key":"k)" + std::to_string(token) + R"("})";
        const bool waits = token % 4 == 0;
        const std::string& sent = waits ? wait : body;
        hapax_call(app, queue, token, "POST", waits ? "/v1/claims" : "/v1/tasks", nullptr, sent.data(), sent.size());
      }
    });
    hapax_close(app);
    other.join();
  }
  hapax_completion completion;
  while (hapax_queue_drain(queue, &completion, 1) == 1) {
    EXPECT_TRUE(statuses.emplace(completion.token, completion.status).second);
    hapax_release(&completion, 1);
  }
  EXPECT_EQ(statuses.size(), kCalls);
  for (const auto& [token, status] : statuses) {
    EXPECT_TRUE(status == 200 || status == 201 || status == 503 || status == 0) << token << ": " << status;
  }
  hapax_queue_free(queue);
}

TEST(CapiCall, ManyThreadsShareOneQueue) {
  CapiApp app;
  constexpr int kThreads = 4, kEach = 250;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        app.call(static_cast<std::uint64_t>(thread * kEach + i), "POST", "/v1/tasks",
                 R"({"type":"t","idempotency_key":"k)" + std::to_string(i) + R"("})");
      }
    });
  }
  int created = 0;
  std::set<std::uint64_t> tokens;
  while (tokens.size() < std::size_t{kThreads * kEach}) {
    const Answer answer = app.next();
    tokens.insert(answer.token);
    created += answer.status == 201 ? 1 : 0;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, kEach);
}

}  // namespace

}  // namespace hapax::capi_testing
