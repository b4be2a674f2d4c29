// Lists, identities, and the settings of queues and types.
#include <fmt/format.h>

#include "cli/command.h"
#include "doors/doors.h"
#include "wire/header.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;

const std::string kLongName(129, 'x'), kLongKey(256, 'x');

// Settings with the members that are set.
template <class Settings, class Set>
Settings with(Set set) {
  Settings settings;
  set(settings);
  return settings;
}

constexpr auto queue_with = [](auto set) { return with<QueueSettings>(set); };
constexpr auto type_with = [](auto set) { return with<TypeSettings>(set); };

class Reading : public Doors {
 protected:
  void expect_at_engines(const std::function<void(Engine&)>& call, const Fault& fault) {
    EXPECT_EQ(fault_of([&] { call(*local_); }), fault);
    EXPECT_EQ(fault_of([&] { call(*remote_); }), fault);
  }
};

TEST_F(Reading, ABadFilterIsRefusedAtEveryDoor) {
  struct Bad {
    std::string parameter;
    std::function<void(ListFilter&)> set;
    std::string value;
  };
  const std::vector<Bad> rows{
      {"queue", [](ListFilter& f) { f.queue = ""; }, ""},
      {"queue", [](ListFilter& f) { f.queue = kLongName; }, kLongName},
      {"type", [](ListFilter& f) { f.type = kLongName; }, kLongName},
      {"idempotency_key", [](ListFilter& f) { f.idempotency_key = kLongKey; }, kLongKey},
      {"idempotency_key", [](ListFilter& f) { f.idempotency_key = " "; }, " "},
      {"limit", [](ListFilter& f) { f.limit = 0; }, "0"},
      {"limit", [](ListFilter& f) { f.limit = 1001; }, "1001"},
  };
  for (const Bad& bad : rows) {
    SCOPED_TRACE(bad.parameter + "=" + bad.value);
    ListFilter filter;
    filter.name_space = space_;
    bad.set(filter);
    const Fault fault = invalid("parameter " + bad.parameter);
    expect_at_engines([&](Engine& engine) { engine.list(filter); }, fault);
    EXPECT_EQ(over_http("GET", fmt::format("/v1/tasks?{}={}", bad.parameter, wire::percent_encode(bad.value))), fault);
  }
  EXPECT_EQ(on_command_line({"list", "--queue", kLongName}).first, kUsage);
  EXPECT_EQ(on_command_line({"list", "--key", kLongKey}).first, kUsage);
}

TEST_F(Reading, ABadIdentityQueryIsRefusedAtEveryDoor) {
  const auto expect = [&](const std::string& type, const std::optional<Scope>& scope,
                          const std::optional<std::string>& queue, const std::string& key, const std::string& query,
                          const std::string& parameter) {
    SCOPED_TRACE(query);
    const Fault fault = invalid("parameter " + parameter);
    expect_at_engines([&](Engine& engine) { engine.find_identity(space_, type, scope, queue, key); }, fault);
    EXPECT_EQ(over_http("GET", "/v1/identities?" + query), fault);
  };
  expect("", {}, {}, "k", "key=k", "type");
  expect(kLongName, {}, {}, "k", "key=k&type=" + kLongName, "type");
  expect("t", {}, {}, " ", "type=t&key=%20", "key");
  expect("t", {}, {}, kLongKey, "type=t&key=" + kLongKey, "key");
  expect("t", {}, kLongName, "k", "type=t&key=k&queue=" + kLongName, "queue");
  expect("t", Scope::parse(kLongName), {}, "k", "type=t&key=k&scope=" + kLongName, "scope");
  expect("", Scope::parse("queue"), {}, "k", "key=k&scope=queue", "queue");
}

TEST_F(Reading, BadQueueSettingsAreRefusedAtEveryDoor) {
  struct Bad {
    std::string place, body;
    QueueSettings settings;
    QueueOptions options;
  };
  const std::vector<Bad> rows{
      {"/retention", R"({"retention":"-1s"})", queue_with([](auto& s) { s.retention = -1s; }), {.retention = -1s}},
      {"/rate_limit", R"({"rate_limit":"often"})", {}, {.rate_limit = "often"}},
      {"/burst", R"({"burst":5})", queue_with([](auto& s) { s.burst = 5; }), {.burst = 5}},
      {"/max_running", R"({"max_running":0})", queue_with([](auto& s) { s.max_running = 0; }), {.max_running = 0}},
      {"/concurrency_limit",
       R"({"concurrency_limit":0})",
       queue_with([](auto& s) { s.concurrency_limit = 0; }),
       {.concurrency_limit = 0}},
      {"/cancel_grace",
       R"({"cancel_grace":"-1s"})",
       queue_with([](auto& s) { s.cancel_grace = -1s; }),
       {.cancel_grace = -1s}},
      {"/idempotency_ttl",
       R"({"idempotency_ttl":"-1s"})",
       queue_with([](auto& s) { s.idempotency_ttl = -1s; }),
       {.idempotency_ttl = -1s}},
  };
  for (const Bad& bad : rows) {
    SCOPED_TRACE(bad.place);
    if (bad.settings != QueueSettings()) {
      expect_at_engines([&](Engine& engine) { engine.put_queue(space_, "q", bad.settings); }, invalid(bad.place));
    }
    EXPECT_EQ(over_http("PUT", "/v1/queues/q", bad.body), invalid(bad.place));
    EXPECT_EQ(fault_of([&] { embedded_.configure_queue("q", bad.options); }), invalid(bad.place));
    EXPECT_EQ(fault_of([&] { far_.configure_queue("q", bad.options); }), invalid(bad.place));
  }
}

TEST_F(Reading, BadTypeSettingsAreRefusedAtEveryDoor) {
  struct Bad {
    std::string place, body;
    TypeSettings settings;
    std::optional<TaskOptions> options;
  };
  const std::vector<Bad> rows{
      {"/queue", R"({"queue":""})", type_with([](auto& s) { s.queue = ""; }), TaskOptions{.queue = ""}},
      {"/max_attempts", R"({"max_attempts":0})", type_with([](auto& s) { s.max_attempts = 0; }),
       TaskOptions{.max_attempts = 0}},
      {"/retry/factor", R"({"retry":{"factor":0}})", type_with([](auto& s) { s.retry.factor = 0; }),
       TaskOptions{.retry = {.factor = 0}}},
      {"/retry/max", R"({"retry":{"initial":"2s","max":"1s"}})", type_with([](auto& s) {
         s.retry.initial = 2s;
         s.retry.max = 1s;
       }),
       TaskOptions{.retry = {.initial = 2s, .max = 1s}}},
      {"/timeout", R"({"timeout":"0"})", type_with([](auto& s) { s.timeout = 0ms; }), TaskOptions{.timeout = 0ms}},
      {"/identity", R"({"identity":"odd"})", {}, TaskOptions{.identity = "odd"}},
      {"/identity_fields", R"({"identity":"contextual"})",
       type_with([](auto& s) { s.identity = Strategy::contextual; }), TaskOptions{.identity = "contextual"}},
      {"/identity_fields", R"({"identity_fields":["/a"]})", type_with([](auto& s) { s.identity_fields = {"/a"}; }),
       TaskOptions{.identity_fields = {{"/a"}}}},
      {"/identity_fields/0", R"({"identity":"contextual","identity_fields":["a"]})", type_with([](auto& s) {
         s.identity = Strategy::contextual;
         s.identity_fields = {"a"};
       }),
       TaskOptions{.identity = contextual("a")}},
      {"/reuse", R"({"reuse":"odd"})", {}, TaskOptions{.reuse = "odd"}},
      {"/priority", R"({"priority":1001})", type_with([](auto& s) { s.priority = 1001; }), {}},
      {"/deadline", R"({"deadline":"0"})", type_with([](auto& s) { s.deadline = 0ms; }), {}},
  };
  for (const Bad& bad : rows) {
    SCOPED_TRACE(bad.place + " " + bad.body);
    if (bad.settings != TypeSettings()) {
      expect_at_engines([&](Engine& engine) { engine.put_type(space_, "t", bad.settings); }, invalid(bad.place));
      expect_at_engines([&](Engine& engine) { engine.declare_type(space_, "t", bad.settings); }, invalid(bad.place));
    }
    expect_at_engines([&](Engine& engine) { engine.patch_type(space_, "t", parse_json(bad.body)); },
                      invalid(bad.place));
    for (const std::string path : {"/v1/types/t", "/v1/types/t/code"}) {
      EXPECT_EQ(over_http("PUT", path, bad.body), invalid(bad.place)) << path;
    }
    EXPECT_EQ(over_http("PATCH", "/v1/types/t", bad.body), invalid(bad.place));
    if (!bad.options) continue;
    for (App* app : {&embedded_, &far_}) {
      EXPECT_EQ(fault_of([&] { app->task("t", [](int) {}, *bad.options); }), invalid(bad.place));
    }
  }
}

TEST_F(Reading, ABadNameOfAQueueOrTypeIsRefusedAtEveryDoor) {
  const Fault fault = invalid("parameter name");
  for (const std::string& name : {std::string("\n"), kLongName}) {
    expect_at_engines([&](Engine& engine) { engine.queue(space_, name); }, fault);
    expect_at_engines([&](Engine& engine) { engine.put_queue(space_, name, {}); }, fault);
    expect_at_engines([&](Engine& engine) { engine.set_paused(space_, name, true); }, fault);
    expect_at_engines([&](Engine& engine) { engine.type(space_, name); }, fault);
    expect_at_engines([&](Engine& engine) { engine.put_type(space_, name, {}); }, fault);
    for (const std::string path : {"/v1/queues/", "/v1/types/"}) {
      EXPECT_EQ(over_http("GET", path + wire::percent_encode(name)), fault);
      EXPECT_EQ(over_http("PUT", path + wire::percent_encode(name), "{}"), fault);
    }
    EXPECT_EQ(fault_of([&] { embedded_.configure_queue(name, {}); }), fault);
    EXPECT_EQ(fault_of([&] { far_.configure_queue(name, {}); }), fault);
    EXPECT_EQ(on_command_line({"queues", "pause", name}).first, kUsage);
  }
}

TEST_F(Reading, ABadNamespaceIsRefusedAtEveryDoor) {
  for (const std::string& url : {std::string("memory:"), url_}) {
    EXPECT_EQ(fault_of([&] { open(url, {.name_space = kLongName}); }), invalid("header Hapax-Namespace"));
  }
  EXPECT_EQ(over_http("GET", "/v1/tasks", "", {"Hapax-Namespace: " + kLongName}), invalid("header Hapax-Namespace"));
  EXPECT_EQ(on_command_line({"list", "--namespace", kLongName}).first, kUsage);
}

}  // namespace
}  // namespace hapax::doors
