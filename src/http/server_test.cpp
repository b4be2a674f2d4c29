#include "http/server.h"

#include <sys/resource.h>

#include <filesystem>
#include <future>
#include <system_error>

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/serving.h"

namespace hapax::http {
namespace {

constexpr std::string_view kLongPoll = R"({"wait":"30s"})";

TEST(Server, ReportsTheRealPort) {
  const Serving serving;
  EXPECT_EQ(serving.server->address(), "127.0.0.1:" + std::to_string(serving.server->port()));
  EXPECT_NE(serving.server->port(), 0);
}

TEST(Server, AnswersOnAKeptConnection) {
  Serving serving;
  TestClient client = serving.client();
  for (int i = 0; i < 3; ++i) {
    const Received answer = client.call("POST", "/v1/tasks", R"({"type":"t","input":7})");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(parse_json(answer.body).at("/execution/input")->text, "7");
  }
  EXPECT_EQ(client.call("GET", "/health", "", "Connection: close\r\n").headers["connection"], "close");
  EXPECT_TRUE(client.at_end());
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  Serving serving;
  TestClient client = serving.client();
  std::string all;
  for (int i = 0; i < 500; ++i) {
    all += request_bytes("POST", "/v1/tasks", "{\"type\":\"t\",\"input\":" + std::to_string(i) + "}");
  }
  auto sending = std::async(std::launch::async, [&] { client.send(all); });
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(parse_json(client.read().body).at("/execution/input")->as_int(), i);
  }
}

TEST(Server, ARequestInSmallPiecesIsOneRequest) {
  Serving serving;
  TestClient client = serving.client();
  for (const char c : request_bytes("POST", "/v1/tasks", R"({"type":"t"})")) client.send(std::string(1, c));
  EXPECT_EQ(client.read().status, 201);
  client.send(
      "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5\r\n{\"typ\r\n7\r\ne\":\"t\"}\r\n0\r\n\r\n");
  EXPECT_EQ(client.read().status, 201);
}

TEST(Server, AnOversizeBodyIs413AndClosesTheConnection) {
  ServerOptions options = quick();
  options.max_body_bytes = 1000;
  Serving serving(options);
  for (const std::string headers : {"Content-Length: 99999999\r\n", "Transfer-Encoding: chunked\r\n"}) {
    TestClient client = serving.client();
    client.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n7d0\r\n" + std::string(2000, ' ') +
                "\r\n");
    const Received answer = client.read();
    EXPECT_EQ(answer.status, 413);
    EXPECT_EQ(error_of(answer), "PayloadTooLarge");
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_EQ(serving.call("POST", "/v1/tasks", R"({"type":"t"})").status, 201);
}

TEST(Server, LongHeadersAre431AndNoHttpIs400) {
  Serving serving;
  TestClient client = serving.client();
  client.send("GET /health HTTP/1.1\r\nX-Filler: " + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read().status, 431);
  for (const char* garbage : {"HELLO\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"}) {
    TestClient other = serving.client();
    other.send(garbage);
    EXPECT_EQ(error_of(other.read()), "MalformedHttp");
    EXPECT_TRUE(other.at_end());
  }
}

TEST(Server, ASlowClientIsCut) {
  ServerOptions options = quick();
  options.read_timeout = std::chrono::milliseconds(20);
  Serving serving(options);
  TestClient slow_header = serving.client(), slow_body = serving.client();
  slow_header.send("POST /v1/tasks HTTP/1.1\r\nHost:");
  slow_body.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(slow_header.read().status, 408);
  EXPECT_TRUE(slow_header.at_end());
  EXPECT_EQ(slow_body.read().status, 408);
}

TEST(Server, AnIdleConnectionIsClosed) {
  ServerOptions options = quick();
  options.idle_timeout = std::chrono::milliseconds(20);
  Serving serving(options);
  TestClient idle = serving.client();
  EXPECT_TRUE(idle.at_end());
}

TEST(Server, MalformedJsonAndUtf8Are400WithTheirPlace) {
  Serving serving;
  for (const std::string body : {"{", "{\"type\":\"\xff\"}", "{\"type\":\"\\ud800\"}"}) {
    const Received answer = serving.call("POST", "/v1/tasks", body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(error_of(answer), "InvalidJson");
    EXPECT_NE(parse_json(answer.body).find("line"), nullptr);
  }
  EXPECT_EQ(error_of(serving.call("POST", "/v1/tasks", "{}", "Content-Type: text/xml\r\n")), "UnsupportedMediaType");
}

TEST(Server, AClientThatExpects100ContinueGetsIt) {
  Serving serving;
  TestClient client = serving.client();
  client.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n");
  EXPECT_EQ(client.read().status, 100);
  client.send(R"({"type":"t"})");
  EXPECT_EQ(client.read().status, 201);
}

TEST(Server, HeadIsGetWithoutTheBody) {
  Serving serving;
  serving.engine.stored = {FakeEngine::task(1)};
  const std::string task = "/v1/tasks/" + FakeEngine::id_of(1).to_string();
  for (const std::string& path : {std::string("/health"), std::string("/openapi.json"), task, task + "/nothing"}) {
    TestClient client = serving.client();
    const Received got = client.call("GET", path);
    client.send(request_bytes("HEAD", path, "", "Connection: close\r\n"));
    const std::string head = client.rest();
    EXPECT_TRUE(head.starts_with("HTTP/1.1 " + std::to_string(got.status))) << head;
    EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
    EXPECT_NE(head.find("\r\nContent-Length: " + std::to_string(got.body.size()) + "\r\n"), std::string::npos) << head;
  }
  EXPECT_EQ(error_of(serving.call("GET", "/v1/claims")), "MethodNotAllowed");
}

TEST(Server, ATakenPortIsASystemErrorThatNamesTheAddress) {
  Serving serving;
  ServerOptions options = quick();
  options.port = serving.server->port();
  try {
    start_server(serving.engine, options);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    EXPECT_NE(std::string(error.what()).find(serving.server->address()), std::string::npos) << error.what();
  }
}

TEST(Server, AnHttp11RequestWithoutAHostIs400) {
  Serving serving;
  TestClient without = serving.client(), twice = serving.client(), old = serving.client();
  without.send("GET /health HTTP/1.1\r\n\r\n");
  EXPECT_EQ(error_of(without.read()), "MalformedHttp");
  EXPECT_TRUE(without.at_end());
  twice.send("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(twice.read().status, 400);
  old.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.read().status, 200);
}

TEST(Server, AFormPostIsJsonUnlessABrowserSendsIt) {
  Serving serving;
  const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n", origin = "Origin: http://evil\r\n";
  const auto status = [&](const std::string& headers) {
    return serving.call("POST", "/v1/tasks", R"({"type":"t"})", headers).status;
  };
  EXPECT_EQ(status(form), 201);
  EXPECT_EQ(status(form + origin), 415);
  EXPECT_EQ(status(origin), 415);
  EXPECT_EQ(status("Content-Type: application/json\r\n" + origin), 201);
  EXPECT_EQ(serving.call("POST", "/v1/queues/q/pause", "", origin).status, 415);
  EXPECT_EQ(serving.call("POST", "/v1/queues/q/pause", "", form).status, 200);
}

TEST(Server, UnknownPathsMethodsAndHeadersGivenTwice) {
  Serving serving;
  EXPECT_EQ(error_of(serving.call("GET", "/v1/nothing")), "RouteNotFound");
  const Received wrong = serving.call("PATCH", "/v1/tasks");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
  const Received twice =
      serving.call("POST", "/v1/tasks", R"({"type":"t"})", "Idempotency-Key: a\r\nIdempotency-Key: b\r\n");
  EXPECT_EQ(twice.status, 400);
}

TEST(Server, TokensGuardAllButTheOpenRoutes) {
  ServerOptions options = quick();
  options.tokens = {{"secret", "shop"}};
  Serving serving(options);
  EXPECT_EQ(serving.call("GET", "/v1/tasks").status, 401);
  EXPECT_EQ(serving.call("GET", "/metrics").status, 401);
  EXPECT_EQ(serving.call("GET", "/v1/nothing").status, 401);
  for (const char* path : {"/health", "/ready", "/openapi.json", "/"}) EXPECT_EQ(serving.call("GET", path).status, 200);
  EXPECT_EQ(serving.call("GET", "/v1/tasks", "", "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(serving.call("GET", "/v1/tasks", "", "Authorization: Bearer secret\r\nHapax-Namespace: bank\r\n").status,
            403);
}

TEST(Server, AFailureIs503WithRetryAfter) {
  Serving serving;
  serving.engine.failure = Failure(Failure::Code::unavailable, "disk on fire");
  for (const auto& answer : {serving.call("POST", "/v1/tasks", R"({"type":"t"})"), serving.call("GET", "/ready")}) {
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.headers.at("retry-after"), "1");
    EXPECT_EQ(error_of(answer), "StoreUnavailable");
    EXPECT_EQ(answer.body.find("disk on fire"), std::string::npos);
  }
}

TEST(Server, ABadItemDoesNotFailItsBatch) {
  Serving serving;
  const Received answer =
      serving.call("POST", "/v1/tasks/batch", R"({"tasks":[{"type":"a"},{"type":1},{"type":"b"}]})");
  EXPECT_EQ(answer.status, 200);
  const Json body = parse_json(answer.body);
  EXPECT_EQ(body.at("/receipts/0/execution/type")->text, "a");
  EXPECT_EQ(body.at("/receipts/1/pointer")->text, "/tasks/1/type");
  EXPECT_EQ(body.at("/receipts/2/execution/type")->text, "b");
}

TEST(Server, LostLeasesAreA409OnlyIfAllAreLost) {
  Serving serving;
  const std::string good = LeaseToken{}.to_string();
  const std::string both = R"({"outcomes":[{"lease":"nonsense"},{"lease":")" + good + R"("}]})";
  const Received mixed = serving.call("POST", "/v1/claims/finish", both);
  EXPECT_EQ(mixed.status, 200);
  EXPECT_EQ(parse_json(mixed.body).at("/outcomes/0/error")->text, "LeaseLost");
  EXPECT_TRUE(parse_json(mixed.body).at("/outcomes/1/ok")->boolean);
  const Received lost = serving.call("POST", "/v1/claims/finish", R"({"outcomes":[{"lease":"nonsense"}]})");
  EXPECT_EQ(lost.status, 409);
  EXPECT_EQ(error_of(lost), "LeaseLost");
  const Received beat = serving.call("POST", "/v1/claims/heartbeat", R"({"leases":["nonsense",")" + good + R"("]})");
  EXPECT_FALSE(parse_json(beat.body).at("/leases/0/ok")->boolean);
  EXPECT_TRUE(parse_json(beat.body).at("/leases/1/cancel_requested")->boolean);
}

TEST(Server, ControlNeedsAKeyAndReturnsItsOutcome) {
  Serving serving;
  const std::string path = "/v1/tasks/" + ExecutionId{}.to_string() + "/retry";
  EXPECT_EQ(error_of(serving.call("POST", path)), "IdempotencyKeyRequired");
  EXPECT_EQ(error_of(serving.call("POST", path, R"({"a":1})", "Idempotency-Key: k\r\n")), "InvalidRequest");
  EXPECT_EQ(serving.call("POST", path, "{}", "Idempotency-Key: k\r\n").status, 200);
  const std::vector<std::pair<ControlOutcome::Kind, std::string>> refusals{
      {ControlOutcome::Kind::not_found, "TaskNotFound"},
      {ControlOutcome::Kind::not_retryable, "TaskNotRetryable"},
      {ControlOutcome::Kind::identity_taken, "IdentityTaken"},
      {ControlOutcome::Kind::failed_before, "RequestFailedBefore"},
      {ControlOutcome::Kind::key_conflict, "IdempotencyConflict"},
  };
  for (const auto& [kind, code] : refusals) {
    serving.engine.control_outcome.kind = kind;
    serving.engine.control_outcome.before = ControlOutcome::Kind::not_retryable;
    const Received answer = serving.call("POST", path, "", "Idempotency-Key: k\r\n");
    EXPECT_EQ(answer.status, kind == ControlOutcome::Kind::not_found ? 404 : 409);
    EXPECT_EQ(error_of(answer), code);
    EXPECT_NE(parse_json(answer.body).find("idempotency_replayed"), nullptr);
  }
}

TEST(Server, ListsHaveACursorIfThereIsMore) {
  Serving serving;
  serving.engine.stored = {FakeEngine::task(3), FakeEngine::task(2)};
  const Json all = parse_json(serving.call("GET", "/v1/tasks").body);
  EXPECT_EQ(all.find("executions")->items.size(), 2U);
  EXPECT_TRUE(all.find("next_cursor")->is(Json::Kind::null));
  const Json page = parse_json(serving.call("GET", "/v1/tasks?limit=1").body);
  EXPECT_EQ(page.find("executions")->items.size(), 1U);
  EXPECT_EQ(page.find("next_cursor")->text, FakeEngine::id_of(3).to_string());
}

TEST(Server, MetricsCountRequestsByRouteAndQueues) {
  Serving serving;
  TestClient client = serving.client();
  client.call("POST", "/v1/tasks", R"({"type":"t"})");
  client.call("POST", "/v1/tasks", "{");
  const std::string text = client.call("GET", "/metrics").body;
  for (const char* line : {R"(hapax_http_requests_total{method="POST",route="/v1/tasks",status="2xx"} 1)",
                           R"(hapax_http_requests_total{method="POST",route="/v1/tasks",status="4xx"} 1)",
                           R"(hapax_http_request_duration_seconds_count{method="POST",route="/v1/tasks"} 2)",
                           R"(hapax_queue_pending{namespace="default",queue="mail"} 3)", "hapax_http_connections 1",
                           "process_start_time_seconds", "hapax_build_info"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Server, MetricsOfABoundTokenNameNoOtherNamespace) {
  ServerOptions options = quick();
  options.tokens = {{"shop-only", "shop"}, {"all", std::nullopt}};
  Serving serving(options);
  const auto queues_for = [&](const std::string& token) {
    const std::string text = serving.call("GET", "/metrics", "", "Authorization: Bearer " + token + "\r\n").body;
    return text.find("queue=\"mail\"") != std::string::npos;
  };
  EXPECT_FALSE(queues_for("shop-only"));
  EXPECT_TRUE(queues_for("all"));
}

TEST(Server, MetricsWithoutQueuesWorkWhileTheStoreFails) {
  Serving serving;
  serving.engine.failure = Failure(Failure::Code::unavailable, "no disk");
  const Received answer = serving.call("GET", "/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("hapax_store_failures_total"), std::string::npos);
  EXPECT_EQ(answer.body.find("hapax_queue_pending"), std::string::npos);
}

TEST(LongPoll, AClientThatHungUpGetsNothing) {
  Serving serving;
  serving.engine.stored = {FakeEngine::task(1)};
  TestClient claiming = serving.client(), waiting = serving.client();
  claiming.send(request_bytes("POST", "/v1/claims", kLongPoll));
  waiting.send(request_bytes("GET", "/v1/tasks/" + FakeEngine::id_of(1).to_string() + "/result?wait=30s"));
  serving.engine.await_waiting(2);
  claiming.close();
  serving.engine.await_cancelled(1);
  waiting.close();
  serving.engine.await_cancelled(2);
}

TEST(LongPoll, AHangUpIsNoticedBehindPipelinedRequests) {
  Serving serving;
  TestClient client = serving.client();
  client.send(request_bytes("POST", "/v1/claims", kLongPoll) + request_bytes("GET", "/health"));
  serving.engine.await_waiting(1);
  client.send(request_bytes("GET", "/health"));
  client.close();
  serving.engine.await_cancelled(1);
}

TEST(LongPoll, ThousandsCostNoThreads) {
  constexpr std::size_t kPolls = 2000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  Serving serving;
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const auto before = threads();
  std::vector<TestClient> clients;
  for (std::size_t i = 0; i < kPolls; ++i) {
    clients.push_back(serving.client());
    clients.back().send(request_bytes("POST", "/v1/claims", kLongPoll));
  }
  serving.engine.await_waiting(kPolls);
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(serving.call("GET", "/health").status, 200);
  serving.server->stop();
  for (TestClient& client : clients) EXPECT_EQ(client.read().body, R"({"claims":[]})");
}

TEST(Stop, AnswersWhatWasReceivedAndEndsLongPolls) {
  ServerOptions options = quick();
  options.io_threads = 2;
  Serving serving(options);
  serving.engine.holds_submissions = true;
  TestClient submitting = serving.client(), polling = serving.client(), idle = serving.client();
  submitting.send(request_bytes("POST", "/v1/tasks", R"({"type":"t"})"));
  polling.send(request_bytes("POST", "/v1/claims", kLongPoll));
  serving.engine.await_held(1);
  serving.engine.await_waiting(1);
  auto stopping = std::async(std::launch::async, [&] { serving.server->stop(); });
  EXPECT_EQ(polling.read().body, R"({"claims":[]})");
  EXPECT_TRUE(polling.at_end());
  EXPECT_TRUE(idle.at_end());
  serving.engine.release_held();
  const Received answer = submitting.read();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(submitting.at_end());
  stopping.get();
  EXPECT_THROW(serving.client(), std::runtime_error);
}

TEST(Stop, IsBoundedAndDropsLateAnswers) {
  ServerOptions options = quick();
  options.drain_timeout = std::chrono::milliseconds(20);
  Serving serving(options);
  serving.engine.holds_submissions = true;
  TestClient client = serving.client();
  client.send(request_bytes("POST", "/v1/tasks", R"({"type":"t"})"));
  serving.engine.await_held(1);
  serving.server->stop();
  EXPECT_EQ(error_of(client.read()), "OutcomeUnknown");
  EXPECT_TRUE(client.at_end());
  serving.engine.release_held();
  serving.server.reset();
}

TEST(Stop, AHalfSentRequestIsNotWaitedFor) {
  ServerOptions options = quick();
  options.read_timeout = options.drain_timeout = std::chrono::hours(1);
  Serving serving(options);
  TestClient head = serving.client(), body = serving.client();
  head.send("POST /v1/tasks HTTP/1.1\r\nHost:");
  body.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n");
  EXPECT_EQ(body.read().status, 100);  // so the server has seen both
  serving.server->stop();
  EXPECT_EQ(error_of(body.read()), "ShuttingDown");
  EXPECT_TRUE(body.at_end());
}

}  // namespace
}  // namespace hapax::http
