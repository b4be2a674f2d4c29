// Activities and events over HTTP: routes, statuses, shapes and refusals, on an engine that fires nothing.
#include <gtest/gtest.h>

#include "core/json.h"
#include "http/fake_engine.h"
#include "http/server.h"
#include "http/test_client.h"

namespace hapax::http {
namespace {

constexpr std::string_view kDaily =
    R"({"name":"Daily","workflow":{"type":"report"},"trigger":{"cron":{"expression":"0 9 * * *","timezone":"Europe/Berlin"}}})";
constexpr std::string_view kEvent =
    R"({"specversion":"1.0","type":"order.paid","source":"/shop","id":"e1","data":{"order":7}})";
constexpr std::string_view kStructured = "Content-Type: application/cloudevents+json; charset=UTF-8\r\n";
constexpr std::string_view kBatch = "Content-Type: application/cloudevents-batch+json\r\n";
constexpr std::string_view kBinary =
    "ce-specversion: 1.0\r\nCE-Type: order.paid\r\nce-source: /shop%20%C3%BC\r\nce-id: e1\r\nContent-Type: "
    "application/json\r\n";

ServerOptions any_port() {
  ServerOptions options;
  options.port = 0;
  return options;
}

class ActivityRoutes : public testing::Test {
 protected:
  Received call(std::string_view method, std::string_view path, std::string_view body = "",
                std::string_view headers = "") {
    return TestClient(server_->port()).call(method, path, body, headers);
  }

  // The status, the code and the pointer: "400 InvalidRequest /trigger".
  std::string refusal(const Received& received) {
    const Json body = parse_json(received.body);
    std::string text = std::to_string(received.status) + " " + body.find("error")->text;
    for (const char* place : {"pointer", "parameter", "header"}) {
      if (body.find(place)) text += " " + body.find(place)->text;
    }
    return text;
  }

  FakeEngine engine_;
  std::unique_ptr<Server> server_ = start_server(engine_, any_port());
};

TEST_F(ActivityRoutes, PutCreatesThenChangesAndGetShowsWhatWasPut) {
  EXPECT_EQ(call("PUT", "/v1/activities/daily%20report", kDaily).status, 201);
  const Received again = call("PUT", "/v1/activities/daily%20report", kDaily);
  EXPECT_EQ(again.status, 200);
  const Json shown = parse_json(call("GET", "/v1/activities/daily%20report").body);
  EXPECT_EQ(shown.find("id")->text, "daily report");
  EXPECT_EQ(shown.at("/workflow/type")->text, "report");
  EXPECT_EQ(shown.at("/trigger/cron/timezone")->text, "Europe/Berlin");
  for (const char* member :
       {"name", "enabled", "paused", "paused_at", "from_file", "created_at", "updated_at", "next", "last"}) {
    EXPECT_NE(shown.find(member), nullptr) << member;
  }
}

TEST_F(ActivityRoutes, ErrorsInADefinitionHaveAPointer) {
  const auto put = [&](std::string_view body) { return refusal(call("PUT", "/v1/activities/a", body)); };
  EXPECT_EQ(put("{"), "400 InvalidJson");
  EXPECT_EQ(put(R"({"workflow":{"type":"t"}})"), "400 InvalidRequest /trigger");
  EXPECT_EQ(put(R"({"workflow":{"type":"t"},"trigger":{"cron":{"expression":"61 * * * *"}}})"),
            "400 InvalidRequest /trigger/cron/expression");
  EXPECT_EQ(
      put(R"({"workflow":{"type":"t"},"trigger":{"cron":{"expression":"* * * * *","misfire_policy":"skip"}},"dedupe_key_strategy":"compress"})"),
      "400 InvalidRequest /dedupe_key_strategy");
  EXPECT_EQ(put(R"({"workflow":{"type":"t"},"trigger":{"event":{"dedupe_by":"source"}}})"),
            "400 InvalidRequest /trigger/event/dedupe_by");
  EXPECT_EQ(refusal(call("PUT", "/v1/activities/" + std::string(129, 'x'), kDaily)), "400 InvalidRequest id");
  EXPECT_EQ(refusal(call("PUT", "/v1/activities/a", kDaily, "Content-Type: text/plain\r\n")),
            "415 UnsupportedMediaType");
}

TEST_F(ActivityRoutes, DeleteAnswersWithoutABodyAndTheConnectionContinues) {
  call("PUT", "/v1/activities/a", kDaily);
  TestClient client(server_->port());
  client.send(
      "DELETE /v1/activities/a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Received deleted = client.read();
  EXPECT_EQ(deleted.status, 204);
  EXPECT_EQ(deleted.headers.count("content-length"), 0U);
  EXPECT_EQ(deleted.headers.count("content-type"), 0U);
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(refusal(call("DELETE", "/v1/activities/a")), "404 ActivityNotFound");
}

TEST_F(ActivityRoutes, TheListIsPaged) {
  for (const char* id : {"a", "b", "c"}) call("PUT", std::string("/v1/activities/") + id, kDaily);
  const Json first = parse_json(call("GET", "/v1/activities?limit=2").body);
  EXPECT_EQ(first.find("activities")->items.size(), 2U);
  EXPECT_EQ(first.find("next_cursor")->text, "b");
  const Json second = parse_json(call("GET", "/v1/activities?limit=2&cursor=b").body);
  EXPECT_EQ(second.find("activities")->items.size(), 1U);
  EXPECT_TRUE(second.find("next_cursor")->is(Json::Kind::null));
  EXPECT_EQ(refusal(call("GET", "/v1/activities?limit=0")), "400 InvalidRequest limit");
}

TEST_F(ActivityRoutes, RunsArePagedAndABadCursorIsRefused) {
  ActivityRun run;
  run.cause = Cause::event;
  run.occurrence = "e1";
  engine_.fake_activities.recorded = {run, run, run};
  call("PUT", "/v1/activities/a", kDaily);
  const Json page = parse_json(call("GET", "/v1/activities/a/runs?limit=2").body);
  EXPECT_EQ(page.find("runs")->items.size(), 2U);
  EXPECT_EQ(page.at("/runs/0/event_id")->text, "e1");
  EXPECT_EQ(page.find("next_cursor")->text, "next");
  EXPECT_EQ(refusal(call("GET", "/v1/activities/a/runs?cursor=x")), "400 InvalidRequest cursor");
  EXPECT_EQ(refusal(call("GET", "/v1/activities/b/runs")), "404 ActivityNotFound");
}

TEST_F(ActivityRoutes, ATriggerNeedsNoKeyAndRunsOncePerKey) {
  call("PUT", "/v1/activities/a", kDaily);
  EXPECT_EQ(call("POST", "/v1/activities/a/trigger").status, 201);
  EXPECT_EQ(call("POST", "/v1/activities/a/trigger").status, 201);
  EXPECT_EQ(call("POST", "/v1/activities/a/trigger", "", "Idempotency-Key: k\r\n").status, 201);
  const Received again = call("POST", "/v1/activities/a/trigger", "", "Idempotency-Key: k\r\n");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"workflow_id":"activity-a:trigger-k","created":false,"idempotency_replayed":true})");
  EXPECT_EQ(refusal(call("POST", "/v1/activities/a/trigger", "", "Idempotency-Key: \r\n")),
            "400 InvalidIdempotencyKey Idempotency-Key");
  EXPECT_EQ(refusal(call("POST", "/v1/activities/b/trigger")), "404 ActivityNotFound");
}

TEST_F(ActivityRoutes, ABackfillNeedsBothTimes) {
  call("PUT", "/v1/activities/a", kDaily);
  const auto backfill = [&](std::string_view body) { return call("POST", "/v1/activities/a/backfill", body); };
  EXPECT_EQ(backfill(R"({"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"})").body, R"({"runs":[]})");
  EXPECT_EQ(refusal(backfill(R"({"from":"2026-01-01T00:00:00Z"})")), "400 InvalidRequest /to");
  EXPECT_EQ(refusal(backfill(R"({"from":"yesterday","to":"2026-01-02T00:00:00Z"})")), "400 InvalidRequest /from");
  EXPECT_EQ(refusal(backfill(R"({"from":"2026-01-03T00:00:00Z","to":"2026-01-02T00:00:00Z"})")),
            "400 InvalidRequest /to");
  EXPECT_FALSE(engine_.fake_activities.backfilled.force);
  EXPECT_EQ(backfill(R"({"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","force":true})").status, 200);
  EXPECT_TRUE(engine_.fake_activities.backfilled.force);
  EXPECT_EQ(refusal(backfill(R"({"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","force":1})")),
            "400 InvalidRequest /force");
}

TEST_F(ActivityRoutes, PauseAndUnpauseShowTheActivity) {
  EXPECT_EQ(refusal(call("POST", "/v1/activities/a/pause")), "404 ActivityNotFound");
  call("PUT", "/v1/activities/a", kDaily);
  EXPECT_TRUE(parse_json(call("POST", "/v1/activities/a/pause").body).find("paused")->boolean);
  EXPECT_FALSE(parse_json(call("POST", "/v1/activities/a/unpause", "{}").body).find("paused")->boolean);
}

TEST_F(ActivityRoutes, ChangingAnActivityOfTheFileIsRefused) {
  engine_.fake_activities.of_file = "a";
  EXPECT_EQ(refusal(call("PUT", "/v1/activities/a", kDaily)), "409 DecidedByFile");
  EXPECT_EQ(refusal(call("DELETE", "/v1/activities/a")), "409 DecidedByFile");
}

TEST_F(ActivityRoutes, EventsAreAcceptedInThreeModes) {
  EXPECT_EQ(
      call("POST", "/v1/events", kEvent, kStructured).body,
      R"({"events":[{"id":"e1","id_assigned":false,"started":["activity-a:e1"],"duplicates":[],"conflicts":[]}]})");
  const std::string batch = "[" + std::string(kEvent) + "," + std::string(kEvent) + "]";
  EXPECT_EQ(parse_json(call("POST", "/v1/events", batch, kBatch).body).find("events")->items.size(), 2U);
  EXPECT_EQ(call("POST", "/v1/events", "[]", kBatch).body, R"({"events":[]})");
  EXPECT_EQ(call("POST", "/v1/events", R"({"order":7})", kBinary).status, 200);
  ASSERT_EQ(engine_.fake_activities.delivered.size(), 1U);
  const CloudEvent& event = engine_.fake_activities.delivered.front();
  EXPECT_EQ(event.id, "e1");
  EXPECT_EQ(event.type, "order.paid");
  EXPECT_EQ(event.source, "/shop ü");
  EXPECT_EQ(event.data()->find("order")->text, "7");
}

TEST_F(ActivityRoutes, ASingleConflictIs409AndABatchNamesEach) {
  engine_.fake_activities.conflicting = "e1";
  for (const std::string_view mode : {kStructured, kBinary}) {
    const Received refused = call("POST", "/v1/events", kEvent, mode);
    EXPECT_EQ(refusal(refused), "409 IdempotencyConflict");
    EXPECT_EQ(parse_json(refused.body).at("/events/0/conflicts/0")->text, "activity-a:e1");
  }
  const Received batch = call("POST", "/v1/events", "[" + std::string(kEvent) + "]", kBatch);
  EXPECT_EQ(batch.status, 200);
  EXPECT_EQ(parse_json(batch.body).at("/events/0/conflicts/0")->text, "activity-a:e1");
}

TEST_F(ActivityRoutes, BinaryModeNeedsNoContentTypeAndTakesLongNames) {
  const std::string name(40, 'x');
  EXPECT_EQ(call("POST", "/v1/events", R"({"order":7})",
                 "ce-specversion: 1.0\r\nce-type: t\r\nce-source: /s\r\nce-id: e1\r\nce-" + name + ": long\r\n")
                .status,
            200);
  ASSERT_EQ(engine_.fake_activities.delivered.size(), 1U);
  EXPECT_EQ(engine_.fake_activities.delivered.front().data()->find("order")->text, "7");
  EXPECT_EQ(engine_.fake_activities.delivered.front().document.find(name)->text, "long");
}

TEST_F(ActivityRoutes, AWebhookSenderGetsPermission) {
  const Received answer =
      call("OPTIONS", "/v1/events", "", "WebHook-Request-Origin: events.example.com\r\nWebHook-Request-Rate: 120\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("webhook-allowed-origin"), "events.example.com");
  EXPECT_EQ(answer.headers.at("webhook-allowed-rate"), "*");
  EXPECT_EQ(answer.headers.at("allow"), "POST, OPTIONS");
  const Received plain = call("OPTIONS", "/v1/events");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.headers.count("webhook-allowed-origin"), 0U);
  EXPECT_EQ(call("OPTIONS", "/v1/activities").status, 204);
}

TEST_F(ActivityRoutes, AQuotedHeaderIsUnquoted) {
  call("POST", "/v1/events", "",
       "ce-specversion: \"1.0\"\r\nce-type: t\r\nce-source: /s\r\nce-subject: \"a \\\"b\\\" c\"\r\n");
  ASSERT_EQ(engine_.fake_activities.delivered.size(), 1U);
  EXPECT_EQ(engine_.fake_activities.delivered.front().subject, "a \"b\" c");
}

TEST_F(ActivityRoutes, InvalidEventsAreRefused) {
  const auto post = [&](std::string_view body, std::string_view headers) {
    return refusal(call("POST", "/v1/events", body, headers));
  };
  EXPECT_EQ(post(kEvent, "Content-Type: application/json\r\n"), "415 UnsupportedMediaType");
  EXPECT_EQ(post(kEvent, "Content-Type: application/cloudevents+xml\r\nce-id: 1\r\n"), "415 UnsupportedMediaType");
  EXPECT_EQ(post("{", kStructured), "400 InvalidJson");
  EXPECT_EQ(post(R"({"specversion":"1.0","source":"/s"})", kStructured), "400 InvalidRequest /type");
  EXPECT_EQ(post(kEvent, kBatch), "400 InvalidRequest ");
  EXPECT_EQ(post("[" + std::string(kEvent) + R"(,{"specversion":"1.0","source":"/s"}])", kBatch),
            "400 InvalidRequest /1/type");
  EXPECT_EQ(post("", "ce-type: t\r\n"), "400 InvalidRequest /specversion");
  EXPECT_EQ(post("", "ce-type: t\r\nCe-Type: u\r\n"), "400 InvalidRequest ce-type");
  EXPECT_EQ(post("", "ce-type: %C0%A0\r\n"), "400 InvalidRequest ce-type");
  EXPECT_EQ(post("", "ce-type: t\r\nce-datacontenttype: text/plain\r\n"), "400 InvalidRequest ce-datacontenttype");
  std::string many = "[" + std::string(kEvent);
  for (int i = 0; i < 1000; ++i) many += "," + std::string(kEvent);
  EXPECT_EQ(post(many + "]", kBatch), "400 InvalidRequest ");
  EXPECT_TRUE(engine_.fake_activities.delivered.empty());
}

}  // namespace
}  // namespace hapax::http
