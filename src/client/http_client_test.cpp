// The client against servers and proxies that do not answer as they should.
#include "client/http_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "client/canned_server.h"
#include "client/remote_server.h"
#include "store/call_deadline.h"

namespace hapax {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

std::string page(const std::string& status) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
}

Failure::Code code_of(HttpClient& client, HttpRequest request) {
  try {
    client.send(std::move(request));
  } catch (const Failure& failure) {
    return failure.code();
  }
  ADD_FAILURE() << "it was answered";
  return Failure::Code::misuse;
}

Failure::Code code_of_started(HttpClient& client, HttpRequest request) {
  std::promise<HttpClient::Outcome> promise;
  client.start(std::move(request), [&](HttpClient::Outcome outcome) { promise.set_value(std::move(outcome)); });
  const HttpClient::Outcome outcome = promise.get_future().get();
  return std::holds_alternative<Failure>(outcome) ? std::get<Failure>(outcome).code() : Failure::Code::misuse;
}

HttpRequest repeated(std::chrono::milliseconds timeout = 30s) {
  HttpRequest request{.method = "POST", .path = "/v1/tasks", .body = "{}"};
  request.timeout = timeout;
  request.repeats = 3;
  return request;
}

TEST(HttpClientTest, ARepeatThatReachesNobodyDoesNotSayWhatTheFirstTryDid) {
  CannedServer first({std::nullopt});
  HttpClient client(first.url(), {});
  EXPECT_EQ(code_of(client, repeated()), Failure::Code::outcome_unknown);
  EXPECT_EQ(first.requests(), 1);
  CannedServer second({std::nullopt});
  HttpClient waiting(second.url(), {});
  EXPECT_EQ(code_of_started(waiting, repeated()), Failure::Code::outcome_unknown);
}

TEST(HttpClientTest, AServerThatIsAwayHasDoneNothing) {
  std::string url;
  {
    const CannedServer gone({});
    url = gone.url();
  }
  HttpClient client(url, {});
  EXPECT_EQ(code_of(client, repeated()), Failure::Code::unavailable);
}

TEST(HttpClientTest, AllTriesTogetherTakeNoLongerThanTheTimeout) {
  const CannedServer silent({});
  HttpClient client(silent.url(), {});
  auto began = Steady::now();
  EXPECT_EQ(code_of(client, repeated(500ms)), Failure::Code::outcome_unknown);
  EXPECT_LT(Steady::now() - began, 1500ms);
  began = Steady::now();
  EXPECT_EQ(code_of_started(client, repeated(500ms)), Failure::Code::outcome_unknown);
  EXPECT_LT(Steady::now() - began, 1500ms);
}

TEST(HttpClientTest, TheDeadlineOfTheCallHoldsForARequest) {
  const CannedServer silent({});
  HttpClient client(silent.url(), {});
  const CallDeadline deadline(100ms);
  EXPECT_EQ(code_of(client, repeated()), Failure::Code::outcome_unknown);
}

TEST(HttpClientTest, AProxyThatAsksToWaitIsAskedAgainLater) {
  for (const std::string status : {"429 Too Many Requests", "408 Request Timeout"}) {
    CannedServer proxy({page(status)});
    RemoteServer server({.url = proxy.url(), .token = {}});
    try {
      server.get("/v1/queues").require();
      ADD_FAILURE() << status;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Failure::Code::unavailable) << status;
    }
  }
}

TEST(HttpClientTest, AProxyWithoutAServerLeavesTheOutcomeOpen) {
  CannedServer proxy({page("502 Bad Gateway")});
  RemoteServer server({.url = proxy.url(), .token = {}});
  try {
    server.post("/v1/tasks", "{}").require();
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::outcome_unknown);
  }
}

}  // namespace
}  // namespace hapax
