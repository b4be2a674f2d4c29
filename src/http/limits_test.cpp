// What the server refuses early, and what it does not wait for.
#include <future>

#include <fmt/format.h>

#include "http/compression.h"
#include "http/metrics.h"
#include "http/query.h"
#include "http/serving.h"

namespace hapax::http {
namespace {

constexpr std::string_view kTask = R"({"type":"t"})";

std::string head(std::string_view path, std::size_t length, std::string_view headers = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n", path, headers, length);
}

// ---- admission

TEST(Admission, AForeignHostIsRefusedWithAdvice) {
  Serving serving;
  bool submitted = false;
  serving.engine.on_submit = [&] { submitted = true; };
  TestClient client = serving.client();
  client.send(
      fmt::format("POST /v1/tasks HTTP/1.1\r\nHost: evil.example:7373\r\nOrigin: http://evil.example:7373\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  kTask.size(), kTask));
  const Received answer = client.read();
  EXPECT_EQ(answer.status, 421);
  EXPECT_EQ(error_of(answer), "ForeignHost");
  EXPECT_NE(answer.body.find("[server] hosts"), std::string::npos);
  EXPECT_FALSE(submitted);
  client.send("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read().status, 421);
  client.send("GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(client.read().status, 200);
}

TEST(Admission, NamedHostsAreAccepted) {
  ServerOptions options = quick();
  options.hosts = {"hapax.example"};
  Serving serving(options);
  const auto status = [&](const std::string& host) {
    TestClient client = serving.client();
    client.send("GET /health HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.read().status;
  };
  EXPECT_EQ(status("hapax.example"), 200);
  EXPECT_EQ(status("127.0.0.1:7373"), 200);
  EXPECT_EQ(status("other.example"), 421);
  serving.server->change_access({{"secret", std::nullopt}}, {});
  EXPECT_EQ(status("other.example"), 200);  // a page has no token
  serving.server->change_access({{"secret", std::nullopt}}, {"hapax.example"});
  EXPECT_EQ(status("other.example"), 421);
}

TEST(Admission, TokensMayChangeWhileTheServerRuns) {
  ServerOptions options = quick();
  options.tokens = {{"old", std::nullopt}};
  Serving serving(options);
  TestClient client = serving.client();
  const auto status = [&](const std::string& token) {
    return client.call("GET", "/v1/tasks", "", "Authorization: Bearer " + token + "\r\n").status;
  };
  EXPECT_EQ(status("old"), 200);
  serving.server->change_access({{"new", std::nullopt}}, {});
  EXPECT_EQ(status("old"), 401);
  EXPECT_EQ(status("new"), 200);
  EXPECT_THROW(serving.server->change_access({{"", std::nullopt}}, {}), std::invalid_argument);
  EXPECT_EQ(status("new"), 200);
}

TEST(Admission, TheLongBodyOfARefusedRequestIsNotRead) {
  ServerOptions options = quick();
  options.tokens = {{"secret", std::nullopt}};
  Serving serving(options);
  const auto status = [&](const std::string& bytes) {
    TestClient client = serving.client();
    client.send(bytes);
    const Received answer = client.read();
    EXPECT_TRUE(client.at_end());
    return answer.status;
  };
  const std::string token = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(status(head("/v1/tasks", 8'000'000)), 401);
  EXPECT_EQ(status(head("/v1/tasks", 8'000'000, "Expect: 100-continue\r\n")), 401);
  EXPECT_EQ(status(head("/v1/nothing", 8'000'000, token)), 404);
  EXPECT_EQ(status(head("/v1/queues", 8'000'000, token)), 405);
  EXPECT_EQ(status("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"), 401);
}

TEST(Admission, AShortBodyIsReadSoThatTheConnectionContinues) {
  ServerOptions options = quick();
  options.tokens = {{"secret", std::nullopt}};
  Serving serving(options);
  TestClient client = serving.client();
  EXPECT_EQ(client.call("POST", "/v1/tasks", kTask).status, 401);
  EXPECT_EQ(client.call("POST", "/v1/tasks", kTask, "Authorization: Bearer secret\r\n").status, 201);
}

TEST(Admission, TrailersAreIgnored) {
  ServerOptions options = quick();
  options.tokens = {{"secret", std::nullopt}};
  Serving serving(options);
  const auto submit = [&](const std::string& headers, const std::string& trailers) {
    TestClient client = serving.client();
    client.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + headers +
                "\r\nc\r\n{\"type\":\"t\"}\r\n0\r\n" + trailers + "\r\n");
    return client.read();
  };
  EXPECT_EQ(submit("", "Authorization: Bearer secret\r\n").status, 401);
  const Received answer = submit("Authorization: Bearer secret\r\n", "Idempotency-Key: k\r\nHost: evil.example\r\n");
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(parse_json(answer.body).at("/execution/idempotency_key")->kind, Json::Kind::null);
}

TEST(Admission, AHeaderInTwoLinesIsRefused) {
  Serving serving;
  for (const char* fold : {" ", "\t"}) {
    TestClient client = serving.client();
    client.send(fmt::format("GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n{}c\r\n\r\n", fold));
    EXPECT_EQ(error_of(client.read()), "MalformedHttp");
    EXPECT_TRUE(client.at_end());
  }
}

TEST(Admission, AQueryOfThousandsOfParametersIsRefusedAtOnce) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += fmt::format("{:x}&", i);
  EXPECT_THROW(Query{text}, std::runtime_error);
  Serving serving;
  const Received answer = serving.call("GET", "/v1/tasks?" + text.substr(0, 10'000));
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("more than 32 parameters"), std::string::npos);
}

// ---- load

TEST(Load, ALongBodyIsHandledWhileItsConnectionsThreadServesOthers) {
  Serving serving;
  std::promise<void> others_served;
  std::future_status seen = std::future_status::timeout;
  serving.engine.on_submit = [&, served = others_served.get_future().share()] {
    seen = served.wait_for(std::chrono::seconds(30));
  };
  TestClient large = serving.client();
  large.send(request_bytes("POST", "/v1/tasks", R"({"type":"t","input":")" + std::string(100'000, 'x') + R"("})"));
  EXPECT_EQ(serving.call("GET", "/health").status, 200);
  others_served.set_value();
  EXPECT_EQ(large.read().status, 201);
  EXPECT_EQ(seen, std::future_status::ready);
}

TEST(Load, RequestsInHandAreBoundedAndHealthAnswers) {
  ServerOptions options = quick();
  options.max_requests = 2;
  Serving serving(options);
  serving.engine.holds_submissions = true;
  TestClient first = serving.client(), second = serving.client(), third = serving.client();
  first.send(request_bytes("POST", "/v1/tasks", kTask));
  second.send(request_bytes("POST", "/v1/tasks", kTask));
  serving.engine.await_held(2);
  const Received refused = third.call("POST", "/v1/tasks", kTask);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(error_of(refused), "Overloaded");
  EXPECT_EQ(third.call("GET", "/health").status, 200);
  EXPECT_EQ(third.call("GET", "/ready").status, 200);
  serving.engine.holds_submissions = false;
  serving.engine.release_held();
  EXPECT_EQ(first.read().status, 201);
  EXPECT_EQ(second.read().status, 201);
  EXPECT_EQ(third.call("POST", "/v1/tasks", kTask).status, 201);
}

TEST(Load, WaitsDoNotCountAsRequestsInHand) {
  ServerOptions options = quick();
  options.max_requests = 2;
  Serving serving(options);
  std::vector<TestClient> polling;
  for (std::size_t i = 0; i < 5; ++i) {
    polling.push_back(serving.client());
    polling.back().send(request_bytes("POST", "/v1/claims", R"({"wait":"30s"})"));
    serving.engine.await_waiting(i + 1);
  }
  EXPECT_EQ(serving.call("POST", "/v1/tasks", kTask).status, 201);
}

TEST(Load, BytesOfBodiesAreBounded) {
  ServerOptions options = quick();
  options.max_body_bytes = options.max_request_bytes = 100'000;
  Serving serving(options);
  TestClient holding = serving.client(), told = serving.client(), chunked = serving.client();
  holding.send(head("/v1/tasks", 60'000, "Expect: 100-continue\r\n"));
  EXPECT_EQ(holding.read().status, 100);
  told.send(head("/v1/tasks", 60'000));
  EXPECT_EQ(error_of(told.read()), "Overloaded");
  EXPECT_TRUE(told.at_end());
  chunked.send("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n" +
               std::string(60'000, ' '));
  EXPECT_EQ(error_of(chunked.read()), "Overloaded");
  holding.close();
  serving.await_metric("hapax_http_request_bytes_in_hand 0");
  EXPECT_EQ(serving.call("POST", "/v1/tasks", std::string(60'000, ' ') + std::string(kTask)).status, 201);
}

TEST(Load, ABodyCountsWithItsDecompressedBytes) {
  ServerOptions options = quick();
  options.max_body_bytes = options.max_request_bytes = 100'000;
  Serving serving(options);
  TestClient holding = serving.client();
  holding.send(head("/v1/tasks", 60'000, "Expect: 100-continue\r\n"));
  EXPECT_EQ(holding.read().status, 100);
  const std::string packed = compress(std::string(60'000, ' ') + std::string(kTask), Coding::gzip);
  const auto submit = [&] { return serving.call("POST", "/v1/tasks", packed, "Content-Encoding: gzip\r\n"); };
  EXPECT_EQ(error_of(submit()), "Overloaded");
  holding.close();
  serving.await_metric("hapax_http_request_bytes_in_hand 0");
  EXPECT_EQ(submit().status, 201);
}

TEST(Load, BeyondTheLimitOfConnectionsOnlyOpenRoutesAreAnswered) {
  ServerOptions options = quick();
  options.max_connections = 2;
  Serving serving(options);
  TestClient first = serving.client(), second = serving.client();
  EXPECT_EQ(first.call("GET", "/health").status, 200);
  EXPECT_EQ(second.call("GET", "/health").status, 200);
  TestClient probe = serving.client(), third = serving.client();
  EXPECT_EQ(probe.call("GET", "/health").status, 200);
  EXPECT_TRUE(probe.at_end());
  const Received refused = third.call("POST", "/v1/tasks", kTask);
  EXPECT_EQ(error_of(refused), "Overloaded");
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_TRUE(third.at_end());
  first.close();
  const auto admitted = [&] { return serving.call("POST", "/v1/tasks", kTask).status == 201; };
  while (!admitted()) {}
}

TEST(Load, AClientThatHangsUpFreesItsConnectionWhileTheStoreHangs) {
  Serving serving;
  serving.engine.holds_submissions = true;
  TestClient client = serving.client();
  client.send(request_bytes("POST", "/v1/tasks", kTask));
  serving.engine.await_held(1);
  client.close();
  serving.await_metric("hapax_http_connections 1");  // the connection that asks
  serving.engine.release_held();
  serving.await_metric("hapax_http_requests_in_hand 1");
}

TEST(Load, UnsentAnswersAreBounded) {
  constexpr std::size_t kAnswer = std::size_t{32} << 20;  // more than the sockets' own buffers hold
  ServerOptions options = quick();
  options.max_unsent_bytes = 3 * kAnswer;
  Serving serving(options);
  serving.engine.stored = {FakeEngine::task(1)};
  serving.engine.stored[0].input = '"' + std::string(kAnswer, 'x') + '"';
  const std::string path = "/v1/tasks/" + FakeEngine::id_of(1).to_string();
  std::vector<TestClient> idle;
  for (int i = 0; i < 6; ++i) {
    idle.push_back(serving.client());
    idle.back().send(request_bytes("GET", path));
  }
  serving.await_metric("hapax_http_connections 3");  // two that are held, and the one that asks
  EXPECT_GT(serving.call("GET", path).body.size(), kAnswer);
}

TEST(Load, AClientThatDoesNotTakeItsAnswerIsClosed) {
  ServerOptions options = quick();
  options.write_timeout = std::chrono::milliseconds(20);
  Serving serving(options);
  serving.engine.stored = {FakeEngine::task(1)};
  serving.engine.stored[0].input = '"' + std::string(std::size_t{32} << 20, 'x') + '"';
  TestClient client = serving.client();
  client.send(request_bytes("GET", "/v1/tasks/" + FakeEngine::id_of(1).to_string()));
  serving.await_metric("hapax_http_connections 1");
}

// ---- time

TEST(TimeLimit, AHangingStoreIsA503ThatSaysWhetherTheOutcomeIsKnown) {
  ServerOptions options = quick();
  options.store_timeout = std::chrono::milliseconds(20);
  Serving serving(options);
  serving.engine.holds_submissions = serving.engine.holds_reads = true;
  TestClient submitting = serving.client(), reading = serving.client();
  submitting.send(request_bytes("POST", "/v1/tasks", kTask));
  reading.send(request_bytes("GET", "/v1/tasks/" + FakeEngine::id_of(1).to_string()));
  const Received unknown = submitting.read(), known = reading.read();
  EXPECT_EQ(unknown.status, 503);
  EXPECT_EQ(unknown.headers.at("retry-after"), "1");
  EXPECT_EQ(error_of(unknown), "OutcomeUnknown");
  EXPECT_EQ(error_of(known), "StoreUnavailable");
  const auto says = [](const Received& answer, const char* part) {
    return answer.body.find(part) != std::string::npos;
  };
  EXPECT_TRUE(says(unknown,
                   "The store did not answer within the time limit. The store did not confirm the commit, so"
                   " its outcome is unknown."))
      << unknown.body;
  EXPECT_TRUE(says(known, "The store did not answer within the time limit.")) << known.body;
  EXPECT_TRUE(says(known, "nothing was done")) << known.body;
  // A late answer is dropped.
  serving.engine.holds_submissions = false;
  serving.engine.release_held();
  serving.engine.release_reads();
  EXPECT_EQ(submitting.call("GET", "/health").status, 200);
  EXPECT_EQ(reading.call("GET", "/v1/tasks").status, 200);
}

TEST(TimeLimit, ReadyWaitsNeitherForSlowReadsNorForAHangingStore) {
  Serving serving;
  serving.engine.holds_reads = true;
  std::vector<TestClient> reading;
  for (int i = 0; i < 4; ++i) {
    reading.push_back(serving.client());
    reading.back().send(request_bytes("GET", "/v1/tasks/" + FakeEngine::id_of(1).to_string()));
  }
  serving.engine.await_blocked(2);
  EXPECT_EQ(serving.call("GET", "/ready").status, 200);
  serving.engine.holds_ready = true;
  const Received late = serving.call("GET", "/ready");
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(error_of(late), "StoreUnavailable");
  EXPECT_EQ(serving.call("GET", "/health").status, 200);
  const Received metrics = serving.call("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_EQ(metrics.body.find("hapax_queue_pending"), std::string::npos);
  serving.engine.release_reads();
  EXPECT_EQ(reading[3].read().status, 404);
  EXPECT_EQ(serving.call("GET", "/ready").status, 200);
}

// ---- metrics

TEST(Metrics, TheNumberOfSeriesIsBounded) {
  Load load(1, 1);
  Metrics metrics({}, load);
  const auto series = [&](int from, int count) {
    std::vector<QueueCount> queues;
    for (int i = from; i < from + count; ++i) queues.push_back({fmt::format("n{}", i), "q", 1, 0, std::nullopt});
    const std::string text = metrics.render({}, queues);
    std::set<std::string> names;
    for (auto at = text.find("hapax_queue_pending{"); at != std::string::npos;
         at = text.find("hapax_queue_pending{", at + 1)) {
      names.insert(text.substr(at, text.find('\n', at) - at));
    }
    return names;
  };
  const auto first = series(0, 1500), later = series(1000, 1500);
  EXPECT_EQ(first.size(), Metrics::kMaxQueues + 1);
  EXPECT_TRUE(first.contains(R"(hapax_queue_pending{namespace="",queue=""} 500)"));
  EXPECT_EQ(later, std::set<std::string>{R"(hapax_queue_pending{namespace="",queue=""} 1500)"});
}

}  // namespace
}  // namespace hapax::http
