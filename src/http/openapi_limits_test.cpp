// Whatever openapi.json says that a request may hold, the server holds to: each bound of each member is tried on both
// sides, each pattern on samples, and the answer must say what the document says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "core/json_writer.h"
#include "http/openapi.h"
#include "http/serving.h"

namespace hapax::http {
namespace {

// Requests that are valid, and have every member that the document bounds.
struct Example {
  const char *method, *path, *body;
  const char* content = "application/json";
};

constexpr Example kExamples[] = {
    {"post", "/v1/tasks", R"({"type":"t","queue":"q","idempotency_key":"k","scope":"mine","idempotency_ttl":"1h",
      "priority":1,"run_at":"2026-01-01T00:00:00Z","max_attempts":2,"retry":{"initial":"0","factor":2,"max":"1000w"},
      "timeout":"1m","concurrency_key":"c","headers":{"a":"b"},"tags":["x"],
      "id":"01900000-0000-7000-8000-000000000001","run_here":{"worker":"w","lease":"60s"}})"},
    {"post", "/v1/tasks", R"({"type":"t","identity":"contextual","identity_fields":["/a"],"delay":"1s"})"},
    {"post", "/v1/tasks/batch", R"({"tasks":[{"type":"t","queue":"q","idempotency_key":"k","scope":"mine",
      "idempotency_ttl":"1h","priority":1,"run_at":"2026-01-01T00:00:00Z","max_attempts":2,
      "retry":{"initial":"0","factor":2,"max":"1000w"},"timeout":"1m","concurrency_key":"c","headers":{"a":"b"},
      "tags":["x"],"id":"01900000-0000-7000-8000-000000000001","run_here":{"worker":"w","lease":"60s"}}]})"},
    {"post", "/v1/tasks/batch",
     R"({"tasks":[{"type":"t","identity":"contextual","identity_fields":["/a"],"delay":"1s"}]})"},
    {"post", "/v1/workflows", R"({"type":"t","workflow_id":"w","queue":"q","idempotency_ttl":"1h","priority":1,
      "run_at":"2026-01-01T00:00:00Z","timeout":"1m","concurrency_key":"c","headers":{"a":"b"},"tags":["x"],
      "id":"01900000-0000-7000-8000-000000000001"})"},
    {"post", "/v1/workflows", R"({"type":"t","workflow_id":"w","delay":"1s"})"},
    {"post", "/v1/batch/workflows", R"({"workflows":[{"type":"t","workflow_id":"w","queue":"q","idempotency_ttl":"1h",
      "priority":1,"run_at":"2026-01-01T00:00:00Z","timeout":"1m","concurrency_key":"c","headers":{"a":"b"},
      "tags":["x"],"id":"01900000-0000-7000-8000-000000000001"}]})"},
    {"post", "/v1/batch/workflows", R"({"workflows":[{"type":"t","workflow_id":"w","delay":"1s"}]})"},
    {"post", "/v1/workflows/w/cancel", R"({"mode":"request","grace":"1s"})"},
    {"post", "/v1/workflows/w/fork", R"({"from_step":1,"workflow_id":"other"})"},
    {"post", "/v1/claims", R"({"worker":"w","queues":["q"],"types":["t"],"kinds":["task"],"limit":1,"wait":"0",
      "lease":"60s","claim_id":"c","sdk":{"name":"s","version":"1"},"host":"h","pid":1})"},
    {"post", "/v1/claims/heartbeat", R"({"leases":["l"],"lease":"60s"})"},
    {"post", "/v1/claims/return", R"({"leases":["l"]})"},
    {"post", "/v1/claims/finish", R"({"outcomes":[{"lease":"l","error":{"type":"E","message":"m","stack":"s"}}]})"},
    {"post", "/v1/claims/finish", R"({"outcomes":[{"lease":"l","snooze":"1s"}]})"},
    {"put", "/v1/queues/q", R"({"retention":"1d","rate_limit":"100000/sec","burst":1,"max_running":1,
      "concurrency_limit":1,"cancel_grace":"1s","idempotency_ttl":"1s"})"},
    {"put", "/v1/types/t", R"({"queue":"q","identity":"contextual","identity_fields":["/a"],"scope":"mine",
      "idempotency_ttl":"1s","priority":1,"max_attempts":1,"retry":{"initial":"0","factor":2,"max":"1000w"},
      "timeout":"1s","deadline":"1s"})"},
    {"post", "/v1/claims/turns", R"({"turns":[{"lease":"l","seen":1,"end":{"kind":"suspended"},
      "step":{"lease":"l","error":{"type":"E","message":"m","stack":"s"}}}]})"},
    {"post", "/v1/claims/turns", R"({"turns":[{"lease":"l","seen":1,"end":{"kind":"suspended"},
      "step":{"lease":"l","snooze":"1s"}}]})"},
    {"post", "/v1/claims/turns", R"({"turns":[{"lease":"l","seen":1,"end":{"kind":"suspended"},"commands":[
      {"step":1,"kind":"task","start":{"type":"t"},"begun":{"lease_for":"1s","worker":"w",
        "lease":"AZAAAAAAcACAAAAAAAAAAQAAAAEAAAAAAAAAAAAAAAAAAAAA"}}]}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"sleep","until":"2026-01-01T00:00:00Z"}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"task","start":{"type":"t","queue":"q","idempotency_key":"k","scope":"mine","idempotency_ttl":"1h",
      "priority":1,"run_at":"2026-01-01T00:00:00Z","max_attempts":2,"retry":{"initial":"0","factor":2,"max":"1000w"},
      "timeout":"1m","concurrency_key":"c","headers":{"a":"b"},"tags":["x"]}}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"task","start":{"type":"t","identity":"contextual","identity_fields":["/a"],"delay":"1s"}}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"child","start":{"type":"t","workflow_id":"w","queue":"q","idempotency_ttl":"1h","priority":1,
      "run_at":"2026-01-01T00:00:00Z","timeout":"1m","concurrency_key":"c","headers":{"a":"b"},"tags":["x"]}}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"child","start":{"type":"t","workflow_id":"w","delay":"1s"}}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"wait_signal","name":"s","until":"2026-01-01T00:00:00Z"}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"side_effect","name":"s","value":1}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"side_effect","name":"s","error":{"type":"E","message":"m","stack":"s"}}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"version","name":"s","value":1}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":2147483647,"kind":"cancel_step","name":"s","value":1}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"publish","name":"s","value":1}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"send_signal","name":"s","workflow_id":"w"}],"end":{"kind":"suspended"}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"sleep","until":"2026-01-01T00:00:00Z"}],"end":{"kind":"failed","error":{"type":"E","message":"m","stack":"s"}}}]})"},
    {"post", "/v1/claims/turns",
     R"({"turns":[{"lease":"l","seen":1,"commands":[{"step":1,"kind":"sleep","until":"2026-01-01T00:00:00Z"}],"end":{"kind":"stuck","error":{"type":"E","message":"m","stack":"s"}}}]})"},
    {"put", "/v1/types/t/code", R"({"queue":"q","identity":"contextual","identity_fields":["/a"],"scope":"mine",
      "idempotency_ttl":"1s","priority":1,"max_attempts":1,"retry":{"initial":"0","factor":2,"max":"1000w"},
      "timeout":"1s","deadline":"1s"})"},
    {"patch", "/v1/types/t", R"({"queue":"q","identity":"contextual","identity_fields":["/a"],"scope":"mine",
      "idempotency_ttl":"1s","priority":1,"max_attempts":1,"retry":{"initial":"0","factor":2,"max":"1000w"},
      "timeout":"1s","deadline":"1s"})"},
    {"put", "/v1/activities/a", R"({"name":"n","workflow":{"type":"t","queue":"q"},"trigger":{"cron":{
      "expression":"@daily","catchup_limit":1,"misfire_grace":"1s","jitter":"1s"}}})"},
    {"put", "/v1/activities/a", R"({"tasks":[{"type":"t","queue":"q"}],"trigger":{"event":{"type":"t","source":"s",
      "subject":"s","where":[{"pointer":"/a","exists":true}]}}})"},
    {"put", "/v1/activities/a", R"({"signal":{"workflow_id":"w","name":"n"},"trigger":{"event":{"type":"t"}}})"},
    {"post", "/v1/activities/a/backfill", R"({"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"})"},
    {"post", "/v1/events", R"({"specversion":"1.0","source":"s","type":"t","subject":"s","datacontenttype":"text/plain",
      "dataschema":"s","time":"2026-01-01T00:00:00Z","data_base64":"YQ=="})",
     "application/cloudevents+json"},
};

// A step is given its id, and begins within its turn or by a claim: there these are refused.
bool is_never_there(const std::string& place) {
  return place.ends_with("/start/id") || place.find("/start/run_here/") != std::string::npos;
}

// What strings are tried with, beside those at the bounds of their lengths.
const std::vector<std::string> kSamples{"",
                                        "a",
                                        "a b",
                                        " ",
                                        "\t",
                                        "\x01",
                                        "a\x7f",
                                        "a:b",
                                        "0",
                                        "1",
                                        "s",
                                        "0s",
                                        "1s",
                                        "9s",
                                        "59s",
                                        "60s",
                                        "61s",
                                        "1m",
                                        "2m",
                                        "0ms",
                                        "999ms",
                                        "1000ms",
                                        "59999ms",
                                        "60000ms",
                                        "60001ms",
                                        "86400s",
                                        "86401s",
                                        "1439m",
                                        "1440m",
                                        "1441m",
                                        "24h",
                                        "25h",
                                        "1d",
                                        "2d",
                                        "1w",
                                        "1h30m",
                                        "90m",
                                        "1m1s",

                                        "1d1d",
                                        "-1s",
                                        "1.5s",
                                        "1 s",
                                        "1y",
                                        "9999d",
                                        "/",
                                        "/a",
                                        "/a/b",
                                        "a/b",
                                        "/~0",
                                        "/~",
                                        "/~2",
                                        "2026-01-01T00:00:00Z",
                                        "2026-02-30T00:00:00Z",
                                        "2024-02-29T00:00:00Z",
                                        "2024-02-29T12:00:00.123456789+01:00",
                                        "2026-01-01",
                                        "1969-12-31T23:59:59Z",
                                        "9999-12-31T23:59:59.999Z",
                                        "2026-01-01T24:00:00Z",
                                        "01900000-0000-7000-8000-000000000001",
                                        "01900000-0000-4000-8000-000000000001",
                                        "01900000-0000-7000-8000-00000000000G",
                                        "019ABCDE-0000-7000-8000-000000000001",
                                        "100/sec",
                                        "0/sec",
                                        "1/week",
                                        "999999/day",
                                        "1000000000/sec",
                                        "1000000001/sec",
                                        "5/hr",
                                        "5/days",
                                        "5/weeks",
                                        "/sec",
                                        "01/sec",
                                        "YQ==",
                                        "YQ=",
                                        "YWJj",
                                        "Y-Jj"};

std::string text_of(const Json& value) {
  JsonWriter out;
  const auto write = [&](const auto& self, const Json& node) -> void {
    switch (node.kind) {
      case Json::Kind::null: out.null(); break;
      case Json::Kind::boolean: out.boolean(node.boolean); break;
      case Json::Kind::number: out.raw(node.text); break;
      case Json::Kind::string: out.string(node.text); break;
      case Json::Kind::array:
        out.begin_array();
        for (const Json& item : node.items) self(self, item);
        out.end_array();
        break;
      case Json::Kind::object:
        out.begin_object();
        for (const auto& [name, member] : node.members) {
          out.key(name);
          self(self, member);
        }
        out.end_object();
    }
  };
  write(write, value);
  return out.take();
}

// Of ASCII: patterns have ranges beyond what a char holds.
std::wstring wide(const std::string& text) { return {text.begin(), text.end()}; }

Json string(std::string text) {
  Json value;
  value.kind = Json::Kind::string;
  value.text = std::move(text);
  return value;
}

Json number(std::int64_t integer) {
  Json value;
  value.kind = Json::Kind::number;
  value.text = std::to_string(integer);
  return value;
}

class OpenApiLimits : public testing::Test {
 protected:
  const Json& resolved(const Json& schema) const {
    const Json* reference = schema.find("$ref");
    return reference ? resolved(*document_.at(std::string_view(reference->text).substr(1))) : schema;
  }

  // The schema of the body of the operation that serves this path.
  const Json* body_schema(const Example& example) const {
    for (const auto& [pattern, item] : document_.find("paths")->members) {
      const std::regex path(std::regex_replace(pattern, std::regex(R"(\{[^}]*\})"), "[^/]+"));
      const Json* operation = item.find(example.method);
      const Json* body = operation ? operation->find("requestBody") : nullptr;
      if (!body || !std::regex_match(example.path, path)) continue;
      return &resolved(*body->find("content")->find(example.content)->find("schema"));
    }
    return nullptr;
  }

  // Whether the server finds fault with what stands there.
  bool is_refused(const Example& example, const Json& body, const std::string& pointer) {
    std::string method = example.method;
    for (char& c : method) c = static_cast<char>(c - 'a' + 'A');
    std::string headers = fmt::format("Content-Type: {}\r\n", example.content);
    if (std::string_view(example.path).starts_with("/v1/workflows/")) headers += "Idempotency-Key: r\r\n";
    const Received answer = client_.call(method, example.path, text_of(body), headers);
    EXPECT_NE(answer.status, 0);
    EXPECT_NE(answer.status, 405);
    return answer.body.find(fmt::format(R"("pointer":"{}")", pointer)) != std::string::npos;
  }

  static Json* find(Json& document, std::string_view pointer) { return const_cast<Json*>(document.at(pointer)); }

  void expect(const Example& example, const std::string& pointer, const Json& value, bool accepted,
              bool may_be_stricter = false) {
    Json body = parse_json(example.body);
    *find(body, pointer) = value;
    const bool refused = is_refused(example, body, pointer);
    if (accepted && refused && may_be_stricter) return;
    const std::string shown = text_of(value).substr(0, 60);
    EXPECT_NE(refused, accepted) << example.method << " " << example.path << " " << pointer << ": " << shown;
  }

  void try_integers(const Example& example, const Json& schema, const std::string& pointer) {
    if (const Json* low = schema.find("minimum")) {
      expect(example, pointer, number(low->as_int().value()), true);
      expect(example, pointer, number(low->as_int().value() - 1), false);
    }
    if (const Json* high = schema.find("maximum")) {
      expect(example, pointer, number(high->as_int().value()), true);
      expect(example, pointer, number(high->as_int().value() + 1), false);
    }
  }

  void try_strings(const Example& example, const Json& schema, const std::string& pointer) {
    const auto bound = [&](const char* name, std::size_t absent) {
      const Json* found = schema.find(name);
      return found ? static_cast<std::size_t>(found->as_int().value()) : absent;
    };
    constexpr std::size_t kNoBound = 1 << 20;
    const std::size_t low = bound("minLength", 0), high = bound("maxLength", kNoBound);
    const Json* pattern = schema.find("pattern");
    const std::wregex regex(pattern ? wide(pattern->text) : L"");
    std::vector<std::string> samples = kSamples;
    if (high != kNoBound) samples.insert(samples.end(), {std::string(high, 'a'), std::string(high + 1, 'a')});
    for (const std::string& sample : samples) {
      const bool fits = sample.size() >= low && sample.size() <= high && std::regex_search(wide(sample), regex);
      expect(example, pointer, string(sample), fits, schema.find("format") != nullptr);
    }
  }

  void try_items(const Example& example, const Json& schema, const std::string& pointer) {
    const Json body = parse_json(example.body);
    const Json first = body.at(pointer)->items.at(0);
    const auto of_length = [&](std::int64_t length) {
      Json array = *body.at(pointer);
      array.items.clear();
      for (std::int64_t i = 0; i < length; ++i) {
        array.items.push_back(first);
        if (first.is(Json::Kind::string) && schema.find("uniqueItems")) array.items.back().text += std::to_string(i);
      }
      return array;
    };
    for (const char* bound : {"minItems", "maxItems"}) {
      const Json* found = schema.find(bound);
      if (!found) continue;
      const std::int64_t length = found->as_int().value();
      expect(example, pointer, of_length(length), true);
      expect(example, pointer, of_length(std::string_view(bound) == "minItems" ? length - 1 : length + 1), false);
    }
  }

  static bool has_bounds(const Json& schema) {
    for (const char* bound : {"minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems"}) {
      if (schema.find(bound)) return true;
    }
    return false;
  }

  static bool allows(const Json& schema, std::string_view kind) {
    const Json* type = schema.find("type");
    if (!type) return false;
    if (type->is(Json::Kind::string)) return type->text == kind;
    return std::any_of(type->items.begin(), type->items.end(), [&](const Json& one) { return one.text == kind; });
  }

  // Of commands and the ends of turns, which say what they are.
  static bool is_of_kind(const Json* value, const Json& schema) {
    const Json* kind = value ? value->find("kind") : nullptr;
    const Json* wanted = schema.at("/properties/kind/enum/0");
    return !kind || !wanted || kind->text == wanted->text;
  }

  // Tries what the example has; what it has not, another one must have.
  void try_all(const Example& example, const Json& given, const std::string& pointer) {
    const Json& schema = resolved(given);
    const Json example_body = parse_json(example.body);
    const std::string place = std::string(example.method) + " " + example.path + " " + pointer;
    if (const Json* branches = schema.find("oneOf")) {
      for (const Json& branch : branches->items) {
        if (is_of_kind(example_body.at(pointer), resolved(branch))) try_all(example, branch, pointer);
      }
      return;
    }
    const bool is_there = example_body.at(pointer) != nullptr;
    if (has_bounds(schema)) {
      bounded_.insert(place);
      if (is_there && tried_.insert(place).second) {
        if (allows(schema, "integer") || allows(schema, "number")) try_integers(example, schema, pointer);
        if (allows(schema, "string")) try_strings(example, schema, pointer);
        if (allows(schema, "array")) try_items(example, schema, pointer);
      }
    }
    if (const Json* properties = schema.find("properties")) {
      for (const auto& [name, member] : properties->members)
        try_all(example, member, pointer + "/" + pointer_step(name));
    }
    if (const Json* items = schema.find("items")) try_all(example, *items, pointer + "/0");
  }

  const Json document_ = parse_json(kOpenApi);
  Serving serving_;
  TestClient client_ = serving_.client();
  std::set<std::string> bounded_, tried_;
};

TEST_F(OpenApiLimits, AreThoseOfTheServer) {
  serving_.engine.ends_waits = true;
  for (const Example& example : kExamples) {
    const Json* schema = body_schema(example);
    ASSERT_NE(schema, nullptr) << example.path;
    try_all(example, *schema, "");
  }
  for (const std::string& place : bounded_)
    EXPECT_TRUE(tried_.contains(place) || is_never_there(place)) << place << ": no example has it";
}

}  // namespace
}  // namespace hapax::http
