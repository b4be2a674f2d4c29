#include "wire/read_request.h"

#include <gtest/gtest.h>

#include "core/field.h"

namespace hapax::wire {
namespace {

template <class Read>
std::string pointer_of(Read read) {
  try {
    read();
    return "accepted";
  } catch (const InvalidField& error) {
    return error.pointer();
  }
}

struct BadField {
  std::string field;
  std::string value;
  std::string pointer;
};

TEST(ReadSubmit, EveryBadFieldIsNamedByItsPointer) {
  const std::string long_name(129, 'x'), long_key(256, 'x');
  const std::vector<BadField> bad{
      {"type", "1", "/type"},
      {"type", "\"" + long_name + "\"", "/type"},
      {"queue", "\"\"", "/queue"},
      {"idempotency_key", "\"  \"", "/idempotency_key"},
      {"idempotency_key", "\"" + long_key + "\"", "/idempotency_key"},
      {"scope", "\"a\\nb\"", "/scope"},
      {"identity", "\"sometimes\"", "/identity"},
      {"identity_fields", "\"/a\"", "/identity_fields"},
      {"identity_fields", "[]", "/identity_fields"},
      {"identity_fields", "[\"/a\",\"b\"]", "/identity_fields/1"},
      {"reuse", "\"never\"", "/reuse"},
      {"on_duplicate", "\"ignore\"", "/on_duplicate"},
      {"idempotency_ttl", "5", "/idempotency_ttl"},
      {"priority", "1001", "/priority"},
      {"priority", "-1001", "/priority"},
      {"priority", "1.5", "/priority"},
      {"run_at", "\"tomorrow\"", "/run_at"},
      {"delay", "\"-1s\"", "/delay"},
      {"max_attempts", "0", "/max_attempts"},
      {"max_attempts", "1001", "/max_attempts"},
      {"retry", "[]", "/retry"},
      {"retry", "{\"initial\":1}", "/retry/initial"},
      {"retry", "{\"speed\":1}", "/retry/speed"},
      {"timeout", "\"0\"", "/timeout"},
      {"deadline", "\"soon\"", "/deadline"},
      {"deadline", "\"0\"", "/deadline"},
      {"concurrency_key", "\"\"", "/concurrency_key"},
      {"dry_run", "1", "/dry_run"},
      {"colour", "1", "/colour"},
  };
  for (const BadField& each : bad) {
    const std::string type = each.field == "type" ? "" : "\"type\":\"t\",";
    const std::string body = "{" + type + "\"" + each.field + "\":" + each.value + "}";
    EXPECT_EQ(pointer_of([&] { read_submit(parse_json(body)); }), each.pointer) << body;
    EXPECT_EQ(pointer_of([&] { read_submit(parse_json(body), "/tasks/7"); }), "/tasks/7" + each.pointer) << body;
  }
}

TEST(ReadSubmit, TypeIsRequiredAndTheBodyAnObject) {
  EXPECT_EQ(pointer_of([] { read_submit(parse_json("{}")); }), "/type");
  EXPECT_EQ(pointer_of([] { read_submit(parse_json("[]")); }), "");
}

TEST(ReadSubmit, RunAtAndDelayExcludeEachOther) {
  const auto body = R"({"type":"t","run_at":"2026-01-01T00:00:00Z","delay":"1s"})";
  EXPECT_EQ(pointer_of([&] { read_submit(parse_json(body)); }), "/delay");
}

TEST(ReadSubmit, ReadsEveryField) {
  const SubmitRequest request = read_submit(parse_json(
      R"({"type":"t","input":{"a":[1]},"queue":"q","idempotency_key":"k","scope":"global","identity":"contextual",
          "identity_fields":["/a"],"reuse":"reject","on_duplicate":"error","idempotency_ttl":"1h","priority":-1000,
          "delay":"5s","max_attempts":7,"retry":{"initial":"2s","factor":3,"max":"1m"},"timeout":"10s",
          "deadline":"2026-01-27T12:00:00Z","concurrency_key":"c","dry_run":true})"));
  EXPECT_EQ(request.type, "t");
  ASSERT_NE(request.input.at("/a/0"), nullptr);
  EXPECT_EQ(request.queue, "q");
  EXPECT_EQ(request.idempotency_key, "k");
  EXPECT_EQ(request.scope->tag, Scope::Tag::global);
  EXPECT_EQ(request.identity, Strategy::contextual);
  EXPECT_EQ(request.identity_fields, std::vector<std::string>{"/a"});
  EXPECT_EQ(request.reuse, Reuse::reject);
  EXPECT_EQ(request.on_duplicate, OnDuplicate::error);
  EXPECT_EQ(request.idempotency_ttl, Duration(3'600'000));
  EXPECT_EQ(request.priority, -1000);
  EXPECT_EQ(request.delay, Duration(5000));
  EXPECT_EQ(request.max_attempts, 7);
  EXPECT_EQ(request.retry.factor, 3);
  EXPECT_EQ(request.timeout, Duration(10'000));
  EXPECT_TRUE(std::holds_alternative<Time>(*request.deadline));
  EXPECT_EQ(request.concurrency_key, "c");
  EXPECT_TRUE(request.dry_run);
}

TEST(ReadBatch, TakesOneToAThousandTasks) {
  EXPECT_EQ(read_batch(parse_json(R"({"tasks":[1,{}]})"), "tasks").size(), 2U);
  EXPECT_EQ(pointer_of([] { read_batch(parse_json(R"({"tasks":[]})"), "tasks"); }), "/tasks");
  EXPECT_EQ(pointer_of([] { read_batch(parse_json(R"({"tasks":{}})"), "tasks"); }), "/tasks");
  EXPECT_EQ(pointer_of([] { read_batch(parse_json(R"({})"), "tasks"); }), "/tasks");
  EXPECT_EQ(pointer_of([] { read_batch(parse_json(R"({"tasks":[],"more":1})"), "tasks"); }), "/more");
  std::string many = "{\"tasks\":[0";
  for (int i = 0; i < 1000; ++i) many += ",0";
  EXPECT_EQ(pointer_of([&] { read_batch(parse_json(many + "]}"), "tasks"); }), "/tasks");
}

TEST(ReadClaim, HasDefaultsAndLimits) {
  const ClaimCall call = read_claim_call(parse_json("{}"), "default");
  EXPECT_EQ(call.worker, "anonymous");
  EXPECT_EQ(call.queues, std::vector<std::string>{"default"});
  EXPECT_EQ(call.limit, 1);
  EXPECT_EQ(call.wait, Duration::zero());
  EXPECT_EQ(call.lease, Duration(60'000));
  const std::vector<std::pair<std::string, std::string>> bad{
      {R"({"worker":""})", "/worker"},
      {R"({"queues":[]})", "/queues"},
      {R"({"queues":["a","b","a"]})", "/queues/2"},
      {R"({"sdk":"c++"})", "/sdk"},
      {R"({"sdk":{}})", "/sdk/name"},
      {R"({"sdk":{"name":""}})", "/sdk/name"},
      {R"({"sdk":{"name":"a","version":7}})", "/sdk/version"},
      {R"({"sdk":{"name":"a","colour":"red"}})", "/sdk/colour"},
      {R"({"host":"a\u0007b"})", "/host"},
      {R"({"pid":0})", "/pid"},
      {R"({"pid":4294967296})", "/pid"},
      {R"({"pid":"7"})", "/pid"},
      {R"({"queues":["a",""]})", "/queues/1"},
      {R"({"limit":0})", "/limit"},
      {R"({"limit":1001})", "/limit"},
      {R"({"wait":"61s"})", "/wait"},
      {R"({"lease":"999ms"})", "/lease"},
      {R"({"lease":"25h"})", "/lease"},
      {R"({"more":1})", "/more"},
  };
  for (const auto& [body, pointer] : bad) {
    EXPECT_EQ(pointer_of([&] { read_claim_call(parse_json(body), "default"); }), pointer) << body;
  }
}

TEST(ReadFinish, ResultsAndErrors) {
  const auto items = read_finish(parse_json(R"({"outcomes":[{"lease":"a"},{"lease":"b","result":null},)"
                                            R"({"lease":"c","error":{"message":"m","retryable":false}}]})"));
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(std::get<Report::Completed>(items[0].outcome).result, std::nullopt);
  EXPECT_EQ(std::get<Report::Completed>(items[1].outcome).result, "null");
  const auto& failed = std::get<Report::Failed>(items[2].outcome);
  EXPECT_EQ(failed.error, (AttemptError{"Error", "m"}));
  EXPECT_FALSE(failed.retryable);
  const std::vector<std::pair<std::string, std::string>> bad{
      {R"({})", "/outcomes"},
      {R"({"outcomes":[]})", "/outcomes"},
      {R"({"outcomes":[{}]})", "/outcomes/0/lease"},
      {R"({"outcomes":[{"lease":"a","error":{}}]})", "/outcomes/0/error/message"},
      {R"({"outcomes":[{"lease":"a","result":1,"error":{"message":"m"}}]})", "/outcomes/0"},
      {R"({"outcomes":[{"lease":"a","colour":1}]})", "/outcomes/0/colour"},
  };
  for (const auto& [body, pointer] : bad) {
    EXPECT_EQ(pointer_of([&] { read_finish(parse_json(body)); }), pointer) << body;
  }
}

TEST(ReadHeartbeat, NeedsLeases) {
  EXPECT_EQ(read_heartbeat(parse_json(R"({"leases":["x"],"lease":"5s"})")).lease, Duration(5000));
  EXPECT_EQ(pointer_of([] { read_heartbeat(parse_json("{}")); }), "/leases");
  EXPECT_EQ(pointer_of([] { read_heartbeat(parse_json(R"({"leases":[1]})")); }), "/leases/0");
  EXPECT_EQ(read_return(parse_json(R"({"leases":["x"]})")), std::vector<std::string>{"x"});
  EXPECT_EQ(pointer_of([] { read_return(parse_json("{}")); }), "/leases");
  EXPECT_EQ(pointer_of([] { read_return(parse_json(R"({"leases":["x"],"lease":"5s"})")); }), "/lease");
}

}  // namespace
}  // namespace hapax::wire
