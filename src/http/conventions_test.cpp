// What HTTP clients rely on besides the API itself: keys, locations, dates, content negotiation, methods.
#include <array>

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/compression.h"
#include "http/serving.h"

namespace hapax::http {
namespace {

ServerOptions small_bodies() {
  ServerOptions options = quick();
  options.max_body_bytes = 100'000;
  return options;
}

std::string text_at(const Received& received, std::string_view pointer) {
  const Json body = parse_json(received.body);
  const Json* value = body.at(pointer);
  return value != nullptr ? value->text : "absent";
}

constexpr std::string_view kTask = R"({"type":"t"})";
constexpr std::string_view kUnknownTask = "/v1/tasks/019bf2d4-0000-7000-8000-000000000000";

TEST(KeyHeader, QuotedAndBareAreTheSameKey) {
  Serving serving(small_bodies());
  for (const char* header : {"Idempotency-Key: abc\r\n", "Idempotency-Key: \"abc\"\r\n"}) {
    EXPECT_EQ(text_at(serving.call("POST", "/v1/tasks", kTask, header), "/execution/idempotency_key"), "abc");
    const std::string both = R"({"type":"t","idempotency_key":"abc"})";
    EXPECT_EQ(serving.call("POST", "/v1/tasks", both, header).status, 201);
    serving.call("POST", std::string(kUnknownTask) + "/cancel", "", header);
    EXPECT_EQ(serving.engine.last_request_key(), "abc");
  }
}

TEST(KeyHeader, AMalformedStringIsRefusedForSubmissionsAndControl) {
  Serving serving(small_bodies());
  for (const char* header : {"Idempotency-Key: \"abc\r\n", "Idempotency-Key: \"a\\b\"\r\n", "Idempotency-Key: \"\"\r\n",
                             "Idempotency-Key: \xff\r\n", "Idempotency-Key: \"\xff\"\r\n"}) {
    for (const std::string& path : {std::string("/v1/tasks"), std::string(kUnknownTask) + "/cancel"}) {
      const Received answer = serving.call("POST", path, path == "/v1/tasks" ? kTask : "", header);
      EXPECT_EQ(answer.status, 400) << path << header;
      EXPECT_EQ(text_at(answer, "/error"), "InvalidIdempotencyKey") << path << header;
      EXPECT_EQ(text_at(answer, "/header"), "Idempotency-Key");
    }
  }
}

TEST(KeyHeader, IsRefusedWhereItHasNoMeaning) {
  Serving serving(small_bodies());
  const std::vector<std::array<std::string_view, 3>> calls{{"GET", "/v1/tasks", ""},
                                                           {"GET", "/health", ""},
                                                           {"POST", "/v1/claims", "{}"},
                                                           {"POST", "/v1/claims/finish", "{}"},
                                                           {"PUT", "/v1/queues/q", "{}"},
                                                           {"POST", "/v1/queues/q/pause", ""},
                                                           {"POST", "/v1/tasks/batch", R"({"tasks":[{"type":"t"}]})"}};
  for (const auto& [method, path, body] : calls) {
    const Received answer = serving.call(method, path, body, "Idempotency-Key: abc\r\n");
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_EQ(text_at(answer, "/header"), "Idempotency-Key") << path;
    EXPECT_NE(text_at(answer, "/message").find("has no meaning for this operation"), std::string::npos) << path;
  }
}

TEST(Answers, ACreatedTaskHasALocation) {
  Serving serving(small_bodies());
  Received created = serving.call("POST", "/v1/tasks", kTask);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.headers["location"], "/v1/tasks/" + text_at(created, "/execution/id"));
  EXPECT_EQ(created.headers.count("idempotency-replayed"), 0U);
  Received flow = serving.call("POST", "/v1/workflows", R"({"type":"w","workflow_id":"a/b \u00fc"})");
  EXPECT_EQ(flow.status, 201);
  EXPECT_EQ(flow.headers["location"], "/v1/workflows/a%2Fb%20%C3%BC");
}

TEST(Answers, ADuplicateHasTheReplayedHeader) {
  Serving serving(small_bodies());
  serving.engine.creates = false;
  Received duplicate = serving.call("POST", "/v1/tasks", kTask, "Idempotency-Key: abc\r\n");
  EXPECT_EQ(duplicate.status, 200);
  EXPECT_EQ(duplicate.headers["idempotency-replayed"], "true");
  EXPECT_EQ(duplicate.headers.count("location"), 0U);
  const std::string path = std::string(kUnknownTask) + "/cancel";
  EXPECT_EQ(serving.call("POST", path, "", "Idempotency-Key: a\r\n").headers.count("idempotency-replayed"), 0U);
  serving.engine.control_outcome.replayed = true;
  EXPECT_EQ(serving.call("POST", path, "", "Idempotency-Key: a\r\n").headers["idempotency-replayed"], "true");
}

TEST(Answers, HaveTheDate) {
  Serving serving(small_bodies());
  for (const auto* path : {"/health", "/v1/nothing", "/v1/tasks"}) {
    const std::string date = serving.call("GET", path).headers["date"];
    EXPECT_EQ(date.size(), 29U) << date;
    EXPECT_TRUE(date.ends_with(" GMT")) << date;
  }
}

TEST(Problems, AreSentOnRequest) {
  Serving serving(small_bodies());
  Received answer = serving.call("GET", kUnknownTask, "", "Accept: application/problem+json\r\n");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.headers["content-type"], "application/problem+json");
  EXPECT_EQ(answer.headers["vary"], "Accept");
  EXPECT_EQ(text_at(answer, "/type"), "urn:hapax:error:TaskNotFound");
  EXPECT_EQ(text_at(answer, "/title"), "Task not found");
  EXPECT_EQ(text_at(answer, "/status"), "404");
  EXPECT_EQ(text_at(answer, "/detail"), text_at(answer, "/message"));
  EXPECT_EQ(text_at(answer, "/error"), "TaskNotFound");
  answer =
      serving.call("POST", "/v1/tasks", R"({"type":""})", "Accept: application/json, application/problem+json\r\n");
  EXPECT_EQ(answer.headers["content-type"], "application/problem+json");
  EXPECT_EQ(text_at(answer, "/pointer"), "/type");
  EXPECT_EQ(serving.call("GET", kUnknownTask, "", "Accept: */*\r\n").headers["content-type"], "application/json");
}

TEST(Problems, AreSentBeforeRoutingToo) {
  Serving serving(small_bodies());
  const std::string accept = "Accept: application/json;q=0.5\r\nAccept: application/problem+json\r\n";
  for (const std::string head : {"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n", "GET /health HTTP/1.1\r\n",
                                 "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n",
                                 "DELETE /v1/tasks HTTP/1.1\r\nHost: localhost\r\n"}) {
    TestClient client(serving.server->port());
    client.send(head + accept + "\r\n");
    Received answer = client.read();
    EXPECT_GE(answer.status, 400) << head;
    EXPECT_EQ(answer.headers["content-type"], "application/problem+json") << head;
    EXPECT_EQ(text_at(answer, "/status"), std::to_string(answer.status)) << head;
  }
}

TEST(Encoding, LongAnswersAreCompressedOnRequest) {
  Serving serving(small_bodies());
  const std::string plain = serving.call("GET", "/openapi.json").body;
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    const std::string accept = "Accept-Encoding: " + std::string(to_string(coding)) + "\r\n";
    Received answer = serving.call("GET", "/openapi.json", "", accept);  // long: on another thread
    EXPECT_EQ(answer.headers["content-encoding"], to_string(coding));
    EXPECT_EQ(answer.headers["vary"], "Accept-Encoding");
    EXPECT_LT(answer.body.size(), plain.size() / 2);
    EXPECT_EQ(decode_body(answer.body, to_string(coding), plain.size()), plain);
    const std::string task = R"({"type":"t","input":")" + std::string(3000, 'x') + R"("})";
    answer = serving.call("POST", "/v1/tasks", task, accept);  // short: at once
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.headers["content-encoding"], to_string(coding));
    EXPECT_LT(answer.body.size(), 2000U);
  }
}

TEST(Encoding, OtherAnswersAreNot) {
  Serving serving(small_bodies());
  EXPECT_EQ(serving.call("GET", "/openapi.json").headers.count("content-encoding"), 0U);
  const std::string refused = "Accept-Encoding: gzip;q=0, br\r\n";
  EXPECT_EQ(serving.call("GET", "/openapi.json", "", refused).headers.count("content-encoding"), 0U);
  EXPECT_EQ(serving.call("GET", "/health", "", "Accept-Encoding: gzip\r\n").headers.count("content-encoding"), 0U);
}

TEST(Encoding, ABodyMayBeCompressed) {
  Serving serving(small_bodies());
  const std::string gzip = "Content-Encoding: gzip\r\n";
  EXPECT_EQ(serving.call("POST", "/v1/tasks", compress(kTask, Coding::gzip), gzip).status, 201);
  EXPECT_EQ(serving.call("POST", "/v1/tasks", compress(std::string(1'000'000, ' '), Coding::gzip), gzip).status, 413);
  EXPECT_EQ(serving.call("POST", "/v1/tasks", kTask, gzip).status, 400);
  Received unknown = serving.call("POST", "/v1/tasks", kTask, "Content-Encoding: br\r\n");
  EXPECT_EQ(unknown.status, 415);
  EXPECT_EQ(unknown.headers["accept-encoding"], "gzip, deflate");
}

TEST(Methods, APathListsItsMethods) {
  Serving serving(small_bodies());
  EXPECT_EQ(serving.call("DELETE", "/v1/queues/q").headers["allow"], "GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(serving.call("GET", "/v1/tasks/batch").headers["allow"], "POST, OPTIONS");
  Received options = serving.call("OPTIONS", "/v1/tasks");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers["allow"], "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(serving.call("OPTIONS", "/v1/nothing").status, 404);
  EXPECT_EQ(serving.call("OPTIONS", "*").status, 204);
}

}  // namespace
}  // namespace hapax::http
