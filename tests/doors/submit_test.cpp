// Every field of a submission with every kind of bad value, at every way in.
#include <gmock/gmock.h>

#include <limits>

#include "cli/command.h"
#include "doors/doors.h"
#include "wire/error_code.h"

namespace hapax::doors {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// What the library is called with.
struct Call {
  std::string type = "t";
  std::string workflow_id = "w";  // of a workflow
  SubmitOptions options = {};
};

struct Bad {
  std::string name;
  Fault fault;
  std::function<void(SubmitRequest&)> request;  // for the engines; empty: their types cannot say it
  std::string member;                           // for HTTP; empty: JSON cannot say it
  std::function<void(Call&)> call;              // for the library; empty: its types cannot say it
  std::vector<std::string> flags = {};          // for the command line; empty: it has no such flag
  Kind kind = Kind::task;
};

const std::string kLongName(129, 'x'), kLongKey(256, 'x'), kNotUtf8 = "\xff";
const Time kFarTime = Time(std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1));

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// A name of the submission itself or of its queue, its key, …: the same three faults each.
void add_texts(std::vector<Bad>& rows, const std::string& field, const std::string& flag, const std::string& too_long,
               const std::string& forbidden, const std::function<void(SubmitRequest&, const std::string&)>& set,
               const std::function<void(Call&, const std::string&)>& call) {
  const auto add = [&](const std::string& what, const std::string& text, bool in_json) {
    Bad row{.name = field + " " + what,
            .fault = invalid("/" + field),
            .request = [=](SubmitRequest& request) { set(request, text); },
            .member = in_json ? quoted(field) + ":" + quoted(text == forbidden ? "\\n" : text) : "",
            .call = [=](Call& each) { call(each, text); }};
    if (!flag.empty() && !text.empty()) row.flags = {flag, text};
    rows.push_back(std::move(row));
  };
  add("empty", "", true);
  add("too long", too_long, true);
  add("forbidden", forbidden, true);
  add("not UTF-8", kNotUtf8, false);
}

std::vector<Bad> bad_texts() {
  std::vector<Bad> rows;
  add_texts(
      rows, "type", "", kLongName, "\n", [](SubmitRequest& r, const std::string& text) { r.type = text; },
      [](Call& c, const std::string& text) { c.type = text; });
  add_texts(
      rows, "queue", "--queue", kLongName, "\n", [](SubmitRequest& r, const std::string& text) { r.queue = text; },
      [](Call& c, const std::string& text) { c.options.queue = text; });
  add_texts(
      rows, "idempotency_key", "--key", kLongKey, "\n",
      [](SubmitRequest& r, const std::string& text) { r.idempotency_key = text; },
      [](Call& c, const std::string& text) { c.options.key = text; });
  add_texts(
      rows, "scope", "--scope", kLongName, "\n",
      [](SubmitRequest& r, const std::string& text) { r.scope = Scope::parse(text); },
      [](Call& c, const std::string& text) { c.options.scope = text; });
  add_texts(
      rows, "concurrency_key", "--concurrency-key", kLongKey, "\n",
      [](SubmitRequest& r, const std::string& text) { r.concurrency_key = text; },
      [](Call& c, const std::string& text) { c.options.concurrency_key = text; });
  return rows;
}

template <class Value>
Bad bad_value(const std::string& field, const std::string& name, Value SubmitRequest::* member, Value value,
              const std::string& json, std::function<void(Call&)> call, std::vector<std::string> flags = {}) {
  return {.name = field + " " + name,
          .fault = invalid("/" + field),
          .request = [=](SubmitRequest& request) { request.*member = value; },
          .member = json.empty() ? "" : quoted(field) + ":" + json,
          .call = std::move(call),
          .flags = std::move(flags)};
}

std::vector<Bad> bad_values() {
  using R = SubmitRequest;
  using Length = std::optional<Duration>;
  using Number = std::optional<std::int32_t>;
  std::vector<Bad> rows{
      bad_value("priority", "too low", &R::priority, Number(-1001), "-1001",
                [](Call& c) { c.options.priority = -1001; }, {"--priority", "-1001"}),
      bad_value("priority", "too high", &R::priority, Number(1001), "1001", [](Call& c) { c.options.priority = 1001; },
                {"--priority", "1001"}),
      bad_value("max_attempts", "none", &R::max_attempts, Number(0), "0", [](Call& c) { c.options.max_attempts = 0; },
                {"--max-attempts", "0"}),
      bad_value("max_attempts", "too many", &R::max_attempts, Number(1001), "1001",
                [](Call& c) { c.options.max_attempts = 1001; }, {"--max-attempts", "1001"}),
      bad_value("delay", "negative", &R::delay, Length(-1ms), "\"-1ms\"", [](Call& c) { c.options.delay = -1ms; }),
      bad_value("delay", "too long", &R::delay, Length(std::chrono::days(36'526)), "\"36526d\"",
                [](Call& c) { c.options.delay = std::chrono::days(36'526); }, {"--delay", "36526d"}),
      bad_value("idempotency_ttl", "negative", &R::idempotency_ttl, Length(-1ms), "\"-1ms\"",
                [](Call& c) { c.options.idempotency_ttl = -1ms; }),
      bad_value("timeout", "nothing", &R::timeout, Length(0ms), "\"0\"", [](Call& c) { c.options.timeout = 0ms; },
                {"--timeout", "0"}),
      bad_value("timeout", "negative", &R::timeout, Length(-1s), "\"-1s\"", [](Call& c) { c.options.timeout = -1s; }),
      bad_value("run_at", "before 1970", &R::run_at, std::optional(Time(-1ms)), "\"1969-12-31T23:59:59.999Z\"",
                [](Call& c) { c.options.run_at = Time(-1ms); }, {"--run-at", "1969-12-31T23:59:59Z"}),
      bad_value("run_at", "after 9999", &R::run_at, std::optional(kFarTime), "\"10000-01-01T00:00:00Z\"",
                [](Call& c) { c.options.run_at = kFarTime; }, {"--run-at", "10000-01-01T00:00:00Z"}),
  };
  using Headers = std::map<std::string, std::string>;
  const Headers many{{"traceparent", std::string(4086, 'x')}};
  rows.push_back(bad_value(
      "headers", "too long", &R::headers, std::optional(many), R"({"traceparent":")" + std::string(4086, 'x') + R"("})",
      [=](Call& c) { c.options.headers = many; }, {"--header", "traceparent=" + std::string(4086, 'x')}));
  rows.push_back({.name = "a header without a name",
                  .fault = invalid("/headers/"),
                  .request = [](SubmitRequest& r) { r.headers = Headers{{"", "x"}}; },
                  .member = R"("headers":{"":"x"})",
                  .call = [](Call& c) { c.options.headers = {{"", "x"}}; },
                  .flags = {"--header", "=x"}});
  rows.push_back(bad_value("tags", "too many", &R::tags, std::optional(std::vector<std::string>(17, "t")),
                           R"(["t","t","t","t","t","t","t","t","t","t","t","t","t","t","t","t","t"])",
                           [](Call& c) { c.options.tags = std::vector<std::string>(17, "t"); }));
  rows.push_back({.name = "an empty tag",
                  .fault = invalid("/tags/1"),
                  .request = [](SubmitRequest& r) { r.tags = std::vector<std::string>{"a", ""}; },
                  .member = R"("tags":["a",""])",
                  .call = [](Call& c) { c.options.tags = {"a", ""}; },
                  .flags = {}});
  using Deadline = std::optional<std::variant<Duration, Time>>;
  rows.push_back(bad_value("deadline", "nothing", &R::deadline, Deadline(Duration(0)), "\"0\"",
                           [](Call& c) { c.options.deadline = 0ms; }, {"--deadline", "0"}));
  rows.push_back(
      bad_value("deadline", "after 9999", &R::deadline, Deadline(kFarTime), "\"10000-01-01T00:00:00Z\"", {}));
  const auto both = [](auto& each) {
    each.delay = 1s;
    each.run_at = Time(1s);
  };
  rows.push_back({.name = "delay beside run_at",
                  .fault = invalid("/delay"),
                  .request = both,
                  .member = R"("delay":"1s","run_at":"1970-01-01T00:00:01Z")",
                  .call = [=](Call& c) { both(c.options); },
                  .flags = {"--run-at", "1970-01-01T00:00:01Z", "--delay", "1s"}});
  rows.push_back({.name = "id of another version",
                  .fault = {"InvalidId", "/id"},
                  .request = [](R& r) { r.id = ExecutionId(); },
                  .member = R"("id":"00000000-0000-0000-0000-000000000000")",
                  .call = [](Call& c) { c.options.id = "00000000-0000-0000-0000-000000000000"; },
                  .flags = {"--id", "00000000-0000-0000-0000-000000000000"}});
  rows.push_back({.name = "id that is none",
                  .fault = {"InvalidId", "/id"},
                  .request = {},
                  .member = R"("id":"x")",
                  .call = [](Call& c) { c.options.id = "x"; },
                  .flags = {"--id", "x"}});
  return rows;
}

std::vector<Bad> bad_words() {
  const auto row = [](const std::string& field, const std::string& flag, auto member) {
    return Bad{.name = field + " unknown",
               .fault = invalid("/" + field),
               .request = {},
               .member = quoted(field) + ":\"odd\"",
               .call = [=](Call& c) { c.options.*member = "odd"; },
               .flags = {flag, "odd"}};
  };
  return {row("identity", "--identity", &SubmitOptions::identity), row("reuse", "--reuse", &SubmitOptions::reuse),
          row("on_duplicate", "--on-duplicate", &SubmitOptions::on_duplicate)};
}

std::vector<Bad> bad_identity_fields() {
  const auto row = [](const std::string& name, const std::string& place, std::vector<std::string> fields,
                      const std::string& json, std::vector<std::string> flags = {}) {
    return Bad{.name = "identity_fields " + name,
               .fault = invalid("/identity_fields" + place),
               .request =
                   [=](SubmitRequest& r) {
                     r.identity = Strategy::contextual;
                     r.identity_fields = fields;
                   },
               .member = json.empty() ? "" : R"("identity":"contextual","identity_fields":)" + json,
               .call =
                   [=](Call& c) {
                     c.options.identity = "contextual";
                     c.options.identity_fields = fields;
                   },
               .flags = std::move(flags)};
  };
  std::string many = "[\"/a\"";
  for (int i = 0; i < 64; ++i) many += ",\"/a\"";
  return {row("none", "", {}, "[]"),
          row("no pointer", "/1", {"/a", "b"}, R"(["/a","b"])",
              {"--identity", "contextual", "--identity-field", "/a", "--identity-field", "b"}),
          row("too many", "", std::vector<std::string>(65, "/a"), many + "]"),
          row("not UTF-8", "/0", {"/" + kNotUtf8}, ""),
          Bad{.name = "identity_fields without contextual",
              .fault = invalid("/identity_fields"),
              .request = [](SubmitRequest& r) { r.identity_fields = {"/a"}; },
              .member = R"("identity_fields":["/a"])",
              .call = [](Call& c) { c.options.identity_fields = {"/a"}; }},
          Bad{.name = "an identity field that the input lacks",
              .fault = {"IdentityFieldMissing", "/input/a"},
              .request =
                  [](SubmitRequest& r) {
                    r.identity = Strategy::contextual;
                    r.identity_fields = {"/a"};
                  },
              .member = R"("identity":"contextual","identity_fields":["/a"])",
              .call = [](Call& c) { c.options.identity = contextual("/a"); }},
          Bad{.name = "a key that is required",
              .fault = {"IdempotencyKeyRequired", "/idempotency_key"},
              .request = [](SubmitRequest& r) { r.identity = Strategy::caller_provided; },
              .member = R"("identity":"caller_provided")",
              .call = [](Call& c) { c.options.identity = caller_provided(); }}};
}

std::vector<Bad> bad_retry() {
  const auto row = [](const std::string& name, const std::string& member, RetryOptions retry, const std::string& json,
                      std::vector<std::string> flags = {}) {
    return Bad{
        .name = "retry " + name,
        .fault = invalid("/retry/" + member),
        .request =
            [=](SubmitRequest& r) { r.retry = {.initial = retry.initial, .factor = retry.factor, .max = retry.max}; },
        .member = json.empty() ? "" : "\"retry\":" + json,
        .call = [=](Call& c) { c.options.retry = retry; },
        .flags = std::move(flags)};
  };
  return {row("initial negative", "initial", {.initial = -1ms}, R"({"initial":"-1ms"})"),
          row("factor too small", "factor", {.factor = 0.5}, R"({"factor":0.5})", {"--retry-factor", "0.5"}),
          row("factor too large", "factor", {.factor = 101}, R"({"factor":101})", {"--retry-factor", "101"}),
          row("factor not a number", "factor", {.factor = std::numeric_limits<double>::quiet_NaN()}, ""),
          row("max shorter than initial", "max", {.initial = 2s, .max = 1s}, R"({"initial":"2s","max":"1s"})",
              {"--retry-initial", "2s", "--retry-max", "1s"})};
}

std::vector<Bad> bad_run_here() {
  const auto row = [](const std::string& name, const std::string& member, SubmitRequest::RunHere run_here,
                      const std::string& json) {
    return Bad{.name = "run_here " + name,
               .fault = invalid("/run_here" + member),
               .request = [=](SubmitRequest& r) { r.run_here = run_here; },
               .member = json.empty() ? "" : R"("run_here":)" + json,
               .call = {}};
  };
  std::vector<Bad> rows{row("worker empty", "/worker", {""}, R"({"worker":""})"),
                        row("worker too long", "/worker", {kLongName}, R"({"worker":")" + kLongName + R"("})"),
                        row("worker not UTF-8", "/worker", {kNotUtf8}, ""),
                        row("lease too short", "/lease", {"w", 999ms}, R"({"worker":"w","lease":"999ms"})"),
                        row("lease too long", "/lease", {"w", 25h}, R"({"worker":"w","lease":"25h"})")};
  rows.push_back({.name = "run_here without a worker",
                  .fault = invalid("/run_here/worker"),
                  .request = {},
                  .member = R"("run_here":{})",
                  .call = {}});
  rows.push_back({.name = "run_here of a workflow",
                  .fault = invalid("/run_here"),
                  .request = [](SubmitRequest& r) { r.run_here = {"w"}; },
                  .member = R"("run_here":{"worker":"w"})",
                  .call = {},
                  .flags = {},
                  .kind = Kind::workflow});
  return rows;
}

// What a workflow has not.
std::vector<Bad> bad_starts() {
  std::vector<Bad> rows{
      {"max_attempts", invalid("/max_attempts"), [](SubmitRequest& r) { r.max_attempts = 5; }, R"("max_attempts":5)",
       [](Call& c) { c.options.max_attempts = 5; }},
      {"retry", invalid("/retry"), [](SubmitRequest& r) { r.retry.factor = 2; }, R"("retry":{"factor":2})",
       [](Call& c) { c.options.retry.factor = 2; }},
      {"scope", invalid("/scope"), [](SubmitRequest& r) { r.scope = Scope(); }, R"("scope":"type")",
       [](Call& c) { c.options.scope = "type"; }},
      {"identity", invalid("/identity"), [](SubmitRequest& r) { r.identity = Strategy::strict; },
       R"("identity":"strict")", [](Call& c) { c.options.identity = strict(); }},
      {"identity_fields", invalid("/identity_fields"), [](SubmitRequest& r) { r.identity_fields = {"/a"}; },
       R"("identity_fields":["/a"])", [](Call& c) { c.options.identity_fields = {"/a"}; }},
      {"idempotency_key",
       invalid("/idempotency_key"),
       {},
       R"("idempotency_key":"k")",
       [](Call& c) { c.options.key = "k"; }},
      {"timeout", invalid("/timeout"), [](SubmitRequest& r) { r.timeout = 0ms; }, R"("timeout":"0")",
       [](Call& c) { c.options.timeout = 0ms; }},
      {"workflow id too long", invalid("/workflow_id"), [](SubmitRequest& r) { r.idempotency_key = kLongKey; },
       "\"workflow_id\":" + quoted(kLongKey), [](Call& c) { c.workflow_id = kLongKey; }},
      {"workflow id blank", invalid("/workflow_id"), [](SubmitRequest& r) { r.idempotency_key = " "; },
       R"("workflow_id":" ")", [](Call& c) { c.workflow_id = " "; }},
      {"workflow id absent",
       invalid("/workflow_id"),
       [](SubmitRequest& r) { r.idempotency_key.reset(); },
       R"("workflow_id":null)",
       {}},
  };
  for (Bad& row : rows) row.kind = Kind::workflow;
  return rows;
}

std::vector<Bad> all() {
  std::vector<Bad> rows;
  for (auto part :
       {bad_texts(), bad_values(), bad_words(), bad_identity_fields(), bad_retry(), bad_run_here(), bad_starts()}) {
    for (Bad& row : part) rows.push_back(std::move(row));
  }
  return rows;
}

class Submit : public Doors {
 protected:
  Fault at_engine(Engine& engine, const Bad& bad) const {
    SubmitRequest request;
    request.kind = bad.kind;
    request.type = "t";
    if (bad.kind == Kind::workflow) request.idempotency_key = "w";
    bad.request(request);
    auto results = await<std::vector<SubmitResult>>([&](auto reply) { engine.submit(space_, {request}, reply); });
    const auto* refusal = std::get_if<Refusal>(&results.at(0));
    if (!refusal) return kAccepted;
    return {std::string(wire::to_string(refusal->code, bad.kind)), refusal->pointer};
  }

  static std::string body_of(const Bad& bad) {
    const bool names = bad.member.starts_with("\"workflow_id\"") || bad.kind == Kind::task;
    const bool types = bad.member.starts_with("\"type\"");
    return "{" + std::string(types ? "" : R"("type":"t",)") + (names ? "" : R"("workflow_id":"w",)") + bad.member + "}";
  }

  Fault in_batch(const Bad& bad) {
    const Answer answer = send("POST", "/v1/tasks/batch", R"({"tasks":[{"type":"t"},)" + body_of(bad) + "]}");
    const Json* code = answer.body.at("/receipts/1/error");
    if (!code) return kAccepted;
    std::string pointer = answer.body.at("/receipts/1/pointer")->text;
    EXPECT_TRUE(pointer.starts_with("/tasks/1")) << pointer;
    return {code->text, pointer.substr(std::min(pointer.size(), std::string("/tasks/1").size()))};
  }

  static Fault at_library(App& app, const Bad& bad) {
    Call call;
    bad.call(call);
    return fault_of([&] {
      if (bad.kind == Kind::task) {
        app.submit(call.type, 1, call.options);
      } else {
        app.start(call.type, call.workflow_id, 1, call.options);
      }
    });
  }

  static Fault in_library_batch(App& app, const Bad& bad) {
    Call call;
    bad.call(call);
    const auto handles = app.submit_batch({BatchItem::of("t", 1), BatchItem::of(call.type, 1, call.options)});
    EXPECT_TRUE(handles.at(0).created());
    return fault_of([&] { handles.at(1).id(); });
  }
};

TEST_F(Submit, EveryBadValueIsRefusedAtEveryDoorAlike) {
  for (const Bad& bad : all()) {
    SCOPED_TRACE(bad.name);
    const std::string path = bad.kind == Kind::task ? "/v1/tasks" : "/v1/workflows";
    if (bad.request) {
      EXPECT_EQ(at_engine(*local_, bad), bad.fault);
    }
    if (bad.request) {
      EXPECT_EQ(at_engine(*remote_, bad), bad.fault);
    }
    if (!bad.member.empty()) {
      EXPECT_EQ(over_http("POST", path, body_of(bad)), bad.fault);
    }
    if (bad.call) {
      EXPECT_EQ(at_library(embedded_, bad), bad.fault);
    }
    if (bad.call) {
      EXPECT_EQ(at_library(far_, bad), bad.fault);
    }
    if (bad.kind == Kind::workflow) continue;
    if (!bad.member.empty()) {
      EXPECT_EQ(in_batch(bad), bad.fault);
    }
    if (bad.call) {
      EXPECT_EQ(in_library_batch(embedded_, bad), bad.fault);
    }
    if (bad.call) {
      EXPECT_EQ(in_library_batch(far_, bad), bad.fault);
    }
  }
}

TEST_F(Submit, TheCommandLineRefusesTheSameAndNamesTheFlag) {
  for (const Bad& bad : all()) {
    if (bad.flags.empty()) continue;
    SCOPED_TRACE(bad.name);
    std::vector<std::string> arguments{"submit", "t"};
    // Joined, so that a value may begin with a minus.
    for (std::size_t i = 0; i < bad.flags.size(); i += 2) arguments.push_back(bad.flags[i] + "=" + bad.flags[i + 1]);
    const auto [code, said] = on_command_line(arguments);
    EXPECT_EQ(code, kUsage) << said;
    EXPECT_THAT(said, HasSubstr(bad.flags[bad.flags.size() - 2])) << said;
  }
}

TEST_F(Submit, ABatchHasAtMostAThousandAtEveryDoor) {
  SubmitRequest one;
  one.type = "t";
  const std::vector<SubmitRequest> requests(1001, one);
  for (Engine* engine : {static_cast<Engine*>(local_.get()), remote_.get()}) {
    EXPECT_EQ(fault_of([&] {
                await<std::vector<SubmitResult>>([&](auto reply) { engine->submit(space_, requests, reply); });
              }),
              invalid("/tasks"));
  }
  const std::vector<BatchItem> items(1001, BatchItem::of("t", 1));
  for (App* app : {&embedded_, &far_}) EXPECT_EQ(fault_of([&] { app->submit_batch(items); }), invalid("/tasks"));
  std::string body = R"({"tasks":[{"type":"t"})";
  for (int i = 0; i < 1000; ++i) body += R"(,{"type":"t"})";
  EXPECT_EQ(over_http("POST", "/v1/tasks/batch", body + "]}"), invalid("/tasks"));
}

TEST_F(Submit, WhatIsThereAlreadyIsToldAtEveryDoor) {
  for (App* app : {&embedded_, &far_}) {
    const AnyHandle first = app->submit("t", 1, key("k"));
    try {
      app->submit("t", 2, key("k"));
      FAIL() << "another input under the same key";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "IdempotencyConflict");
      EXPECT_EQ(error.existing_execution_id(), first.id());
      EXPECT_EQ(error.status(), "pending");
      EXPECT_TRUE(error.input_hash().starts_with("sha256:")) << error.input_hash();
      EXPECT_TRUE(error.existing_input_hash().starts_with("sha256:")) << error.existing_input_hash();
      EXPECT_NE(error.input_hash(), error.existing_input_hash());
      EXPECT_FALSE(error.safe_to_retry());
    }
    app->task("t", [](int number) { return number + 1; });
    app->work({.handle_signals = false, .until_idle_for = 50ms});
    try {
      app->submit("t", 1, {.key = "k", .on_duplicate = "error"});
      FAIL() << "it has completed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "TaskAlreadyCompleted");
      EXPECT_EQ(error.existing_execution_id(), first.id());
      EXPECT_EQ(error.status(), "completed");
      EXPECT_TRUE(error.completed_at().has_value());
      EXPECT_EQ(error.result_json(), "2");
    }
  }
}

}  // namespace
}  // namespace hapax::doors
