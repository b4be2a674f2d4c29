#include "core/cloud_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/canonical_json.h"
#include "core/field.h"

namespace hapax {
namespace {

using testing::StartsWith;

constexpr std::string_view kRequired = R"("specversion":"1.0","source":"/shop","type":"order.paid")";

// An event with these members beside the required ones.
CloudEvent parse(std::string_view members) {
  return CloudEvent::parse(parse_json("{" + std::string(kRequired) + std::string(members) + "}"));
}

std::string error_of(std::string_view text) {
  try {
    CloudEvent::parse(parse_json(text), "/3");
    return "";
  } catch (const InvalidField& error) {
    return error.pointer() + " " + error.what();
  }
}
std::string error_with(std::string_view members) {
  return error_of("{" + std::string(kRequired) + std::string(members) + "}");
}

using Attributes = std::vector<std::pair<std::string, std::string>>;
const Attributes kAttributes{{"specversion", "1.0"}, {"id", "e1"}, {"source", "/shop"}, {"type", "order.paid"}};

std::string document_of(std::string_view content_type, std::string_view body) {
  return canonical_json(read_binary_event(kAttributes, content_type, body).document);
}
std::string binary_error(const Attributes& attributes, std::string_view content_type, std::string_view body) {
  try {
    read_binary_event(attributes, content_type, body);
    return "";
  } catch (const InvalidField& error) {
    return error.pointer() + " " + error.what();
  }
}

bool meets(std::string_view demand, std::string_view data) {
  const auto settings = ActivitySettings::parse(
      parse_json(R"({"workflow":{"type":"t"},"trigger":{"event":{"where":[)" + std::string(demand) + "]}}}"));
  return matches(*settings.event(), parse(data.empty() ? "" : ",\"data\":" + std::string(data)));
}

TEST(CloudEvent, IsReadWithAllItsAttributes) {
  const CloudEvent event =
      parse(R"(,"id":"e1","subject":"s","time":"2026-01-01T00:00:00Z","retries":3,"urgent":true,"data":{"a":1})");
  EXPECT_EQ(event.id, "e1");
  EXPECT_FALSE(event.id_assigned);
  EXPECT_EQ(event.source, "/shop");
  EXPECT_EQ(event.type, "order.paid");
  EXPECT_EQ(event.subject, "s");
  ASSERT_NE(event.data(), nullptr);
  EXPECT_EQ(canonical_json(*event.data()), R"({"a":1})");
  EXPECT_EQ(canonical_json(event.document),
            R"({"data":{"a":1},"datacontenttype":"application/json","id":"e1","retries":3,"source":"/shop",)"
            R"("specversion":"1.0","subject":"s","time":"2026-01-01T00:00:00Z","type":"order.paid","urgent":true})");
}

TEST(CloudEvent, MayComeWithoutAnIdAndIsGivenOne) {
  CloudEvent event = parse("");
  EXPECT_EQ(event.id, "");
  event.assign_id("made-up");
  EXPECT_EQ(event.id, "made-up");
  EXPECT_TRUE(event.id_assigned);
  ASSERT_NE(event.document.find("id"), nullptr);
  EXPECT_EQ(event.document.find("id")->text, "made-up");
  event.assign_id("another");
  EXPECT_EQ(canonical_json(event.document),
            R"({"id":"another","source":"/shop","specversion":"1.0","type":"order.paid"})");
}

TEST(CloudEvent, AttributeThatIsNullIsAbsent) {
  const CloudEvent event = parse(R"(,"id":null,"subject":null,"data_base64":null,"data":null)");
  EXPECT_EQ(event.id, "");
  EXPECT_EQ(event.document.find("subject"), nullptr);
  ASSERT_NE(event.data(), nullptr);
  EXPECT_TRUE(event.data()->is(Json::Kind::null));
}

TEST(CloudEvent, RefusesWhatIsNoneAndSaysWhere) {
  EXPECT_EQ(error_of("[]"), "/3 must be an object");
  EXPECT_EQ(error_of(R"({"source":"a","type":"b"})"), "/3/specversion is required");
  EXPECT_EQ(error_of(R"({"specversion":"0.3","source":"a","type":"b"})"), R"(/3/specversion must be "1.0", not "0.3")");
  EXPECT_EQ(error_of(R"({"specversion":"1.0","type":"b"})"), "/3/source is required");
  EXPECT_EQ(error_of(R"({"specversion":"1.0","source":"","type":"b"})"), "/3/source must not be empty");
  EXPECT_EQ(error_of(R"({"specversion":"1.0","source":"a"})"), "/3/type is required");
  EXPECT_EQ(error_with(R"(,"id":"")"), "/3/id must not be empty");
  EXPECT_EQ(error_with(R"(,"id":7)"), "/3/id must be a string");
  EXPECT_EQ(error_with(R"(,"id":")" + std::string(255, 'x') + '"'), "");
  EXPECT_EQ(error_with(R"(,"id":")" + std::string(256, 'x') + '"'), "/3/id must be at most 255 bytes long, not 256");
  EXPECT_THAT(error_with(R"(,"time":"yesterday")"), StartsWith("/3/time must be an RFC 3339 time"));
}

TEST(CloudEvent, RefusesAttributesThatCannotBe) {
  EXPECT_THAT(error_with(R"(,"My-Header":"x")"), StartsWith("/3/My-Header is no name of an attribute"));
  EXPECT_EQ(error_with(R"(,"abcdefghijklmnopqr12":"x")"), "");
  EXPECT_THAT(error_with(R"(,"extra":{"a":1})"),
              StartsWith("/3/extra must be a string, true, false or a 32-bit integer"));
  EXPECT_THAT(error_with(R"(,"extra":2147483648)"), StartsWith("/3/extra must be"));
  EXPECT_THAT(error_with(R"(,"extra":1.5)"), StartsWith("/3/extra must be"));
}

TEST(CloudEvent, HasDataInOneFormOnly) {
  EXPECT_EQ(error_with(R"(,"data":1,"data_base64":"AAAA")"),
            R"(/3/data_base64 must not stand beside "data": it is one or the other)");
  EXPECT_EQ(error_with(R"(,"data_base64":"AAA")"), "/3/data_base64 must be Base64 (RFC 4648) with its padding");
  EXPECT_EQ(error_with(R"(,"data_base64":"A-_A")"), "/3/data_base64 must be Base64 (RFC 4648) with its padding");
  EXPECT_EQ(parse(R"(,"data_base64":"AAA=")").data(), nullptr);
}

TEST(BinaryEvent, IsTheSameAsTheStructuredOne) {
  EXPECT_EQ(canonical_json(parse(R"(,"id":"e1","data":{"a":1})").document),
            document_of("application/json", R"({"a":1})"));
}

TEST(BinaryEvent, TakesAJsonBodyAsData) {
  EXPECT_EQ(document_of("application/json; charset=utf-8", R"({"a":1})"),
            R"({"data":{"a":1},"datacontenttype":"application/json; charset=utf-8","id":"e1","source":"/shop",)"
            R"("specversion":"1.0","type":"order.paid"})");
  EXPECT_THAT(document_of("Application/Vnd.Shop+JSON", "[1]"), StartsWith(R"({"data":[1],)"));
  EXPECT_THAT(document_of("application/json", "null"), StartsWith(R"({"data":null,)"));
  EXPECT_EQ(
      binary_error(kAttributes, "application/json", "{"),
      "/data is no JSON, though its content type is application/json: line 1, column 2: the document ends too early");
}

TEST(BinaryEvent, WithoutAContentTypeIsJsonIfItParses) {
  EXPECT_EQ(document_of("", R"({"a":1})"), document_of("application/json", R"({"a":1})"));
  EXPECT_THAT(document_of("", "7"), StartsWith(R"({"data":7,)"));
  EXPECT_THAT(document_of("", R"({"a":1)"), StartsWith(R"({"data_base64":)"));
  EXPECT_THAT(document_of("", R"({"a":1,"a":2})"), StartsWith(R"({"data_base64":)"));
}

TEST(BinaryEvent, TakesATextAsAString) {
  EXPECT_THAT(document_of("text/plain", "h\xC3\xA9llo \"x\""), StartsWith("{\"data\":\"h\xC3\xA9llo \\\"x\\\"\","));
  EXPECT_THAT(document_of("text/plain; charset=latin1", "h\xE9llo"), StartsWith(R"({"data_base64":"aOlsbG8=",)"));
}

TEST(BinaryEvent, TakesAnythingElseAsBase64) {
  EXPECT_THAT(document_of("image/png", std::string_view("\0\xFF", 2)), StartsWith(R"({"data_base64":"AP8=",)"));
  EXPECT_THAT(document_of("application/octet-stream", "abc"), StartsWith(R"({"data_base64":"YWJj",)"));
  EXPECT_THAT(document_of("", "a"), StartsWith(R"({"data_base64":"YQ==",)"));
  EXPECT_EQ(document_of("", ""), R"({"id":"e1","source":"/shop","specversion":"1.0","type":"order.paid"})");
}

TEST(BinaryEvent, RefusesBadAttributes) {
  EXPECT_EQ(binary_error({{"specversion", "1.0"}, {"type", "b"}}, "", ""), "/source is required");
  EXPECT_THAT(binary_error({{"specversion", "1.0"}, {"specversion", "1.0"}}, "", ""), "/specversion is there twice");
  EXPECT_THAT(binary_error({{"data", "x"}}, "", ""), StartsWith("/data must not be a header"));
  EXPECT_THAT(binary_error({{"datacontenttype", "x"}}, "", ""), StartsWith("/datacontenttype must not be a header"));
  EXPECT_THAT(binary_error({{"source", "\xFF"}}, "", ""), StartsWith("/source must be UTF-8"));
  EXPECT_THAT(binary_error({{"under_score", "x"}}, "", ""), StartsWith("/under_score is no name of an attribute"));
}

TEST(CloudEvent, TakesNamesOfAttributesOfAnyLength) {
  const std::string name(40, 'n');
  EXPECT_EQ(parse(",\"" + name + "\":\"x\"").document.find(name)->text, "x");
  EXPECT_THAT(binary_error({{"under_score", "x"}}, "", ""), StartsWith("/under_score is no name of an attribute"));
}

TEST(EventHash, IsOfTypeSourceSubjectAndData) {
  const auto hash = [](const std::string& text) { return CloudEvent::parse(parse_json(text)).hash(); };
  const std::string begin = R"({"specversion":"1.0","id":"e1","type":"t","source":"/s")";
  const EventHash one = hash(begin + R"(,"subject":"x","data":{"a":1,"b":2}})");
  for (const char* same :
       {R"(,"subject":"x","data":{"b":2.0,"a":1}})",
        R"(,"data":{"a":1,"b":2},"subject":"x","time":"2026-01-01T00:00:00Z"})",
        R"(,"subject":"x","data":{"a":1,"b":2},"dataschema":"urn:a","datacontenttype":"application/vnd.x+json"})",
        R"(,"subject":"x","data":{"a":1,"b":2},"traceparent":"00-1","tracestate":"y","extension":5})"}) {
    EXPECT_EQ(hash(begin + same), one) << same;
  }
  EXPECT_EQ(hash(R"({"specversion":"1.0","id":"e2","type":"t","source":"/s","subject":"x","data":{"a":1,"b":2}})"),
            one);
  for (const std::string& other :
       {begin + R"(,"data":{"a":1,"b":2}})", begin + R"(,"subject":"y","data":{"a":1,"b":2}})",
        begin + R"(,"subject":"x","data":{"a":1}})", begin + R"(,"subject":"x"})",
        begin + R"(,"subject":"x","data":null})", begin + R"(,"subject":"x","data_base64":"YQ=="})",
        std::string(R"({"specversion":"1.0","type":"u","source":"/s","subject":"x","data":{"a":1,"b":2}})"),
        std::string(R"({"specversion":"1.0","type":"t","source":"/r","subject":"x","data":{"a":1,"b":2}})")}) {
    EXPECT_NE(hash(other), one) << other;
  }
  EXPECT_NE(hash(begin + R"(,"data":"YQ=="})"), hash(begin + R"(,"data_base64":"YQ=="})"));
}

TEST(EventHash, AJsonStringIsNotWhatItSpells) {
  const auto hash = [](const std::string& data) {
    return CloudEvent::parse(parse_json(R"({"specversion":"1.0","id":"e1","type":"t","source":"/s",)" + data + "}"))
        .hash();
  };
  for (const std::string value : {"1", "true", "null", R"({"a":1})"}) {
    const std::string text = canonical_json(parse_json(value));
    std::string quoted;
    append_json_string(quoted, text);
    EXPECT_NE(hash("\"data\":" + value), hash("\"data\":" + quoted)) << value;
    EXPECT_EQ(hash("\"data\":" + value), hash("\"datacontenttype\":\"text/plain\",\"data\":" + quoted)) << value;
  }
}

TEST(EventHash, IsTheSameWithWhateverContentTypeTheBodyComes) {
  const auto hash = [](std::string_view type, std::string_view body) {
    return read_binary_event({{"specversion", "1.0"}, {"id", "e1"}, {"type", "t"}, {"source", "/s"}}, type, body)
        .hash();
  };
  for (const std::string_view body :
       {"hello", "\xC3\xA9t\xC3\xA9", R"({"a": [1, 2]})", "17", R"("quoted")", "\xFF\x01"}) {
    const EventHash one = hash("", body);
    EXPECT_EQ(hash("text/plain", body), one) << body;
    EXPECT_EQ(hash("application/octet-stream", body), one) << body;
  }
  EXPECT_EQ(hash("application/json", R"({"a":[1,2]})"), hash("text/plain", R"({"a": [1, 2]})"));
  EXPECT_NE(hash("", "hello"), hash("text/plain", "hello "));
  EXPECT_NE(hash("", "\xFF\x01"), hash("", "\xFF\x02"));
}

TEST(Matching, ComparesTypeSourceAndSubject) {
  const CloudEvent event = parse(R"(,"subject":"s")");
  EXPECT_TRUE(matches(EventTrigger{}, event));
  EventTrigger trigger;
  trigger.type = "order.paid";
  trigger.source = "/shop";
  trigger.subject = "s";
  EXPECT_TRUE(matches(trigger, event));
  EXPECT_FALSE(matches(trigger, parse("")));
  trigger.type = "order";
  EXPECT_FALSE(matches(trigger, event));
  trigger.type = "order.paid";
  trigger.source = "/shop/";
  EXPECT_FALSE(matches(trigger, event));
}

TEST(Matching, ComparesValuesCanonically) {
  constexpr std::string_view kFive = R"({"pointer":"/amount","equals":5})";
  EXPECT_TRUE(meets(kFive, R"({"amount":5})"));
  EXPECT_TRUE(meets(kFive, R"({"amount":5.0})"));
  EXPECT_TRUE(meets(kFive, R"({"amount":5e0})"));
  EXPECT_FALSE(meets(kFive, R"({"amount":"5"})"));
  EXPECT_FALSE(meets(kFive, "{}"));
  EXPECT_FALSE(meets(kFive, ""));
  EXPECT_TRUE(meets(R"({"pointer":"/a","equals":{"x":1,"y":[2]}})", R"({"a":{"y":[2.0],"x":1}})"));
  EXPECT_TRUE(meets(R"({"pointer":"","equals":"all"})", R"("all")"));
  EXPECT_FALSE(meets(R"({"pointer":"/n","equals":9007199254740993})", R"({"n":9007199254740992})"));
  EXPECT_TRUE(meets(R"({"pointer":"/a","equals":null})", R"({"a":null})"));
  EXPECT_FALSE(meets(R"({"pointer":"/a","equals":null})", "{}"));
}

TEST(Matching, ComparesPrefixesOfStringsOnly) {
  constexpr std::string_view kPrefix = R"({"pointer":"/id","prefix":"4"})";
  EXPECT_TRUE(meets(kPrefix, R"({"id":"42"})"));
  EXPECT_FALSE(meets(kPrefix, R"({"id":"24"})"));
  EXPECT_FALSE(meets(kPrefix, R"({"id":42})"));
  EXPECT_FALSE(meets(kPrefix, "{}"));
}

TEST(Matching, AsksWhetherSomethingExists) {
  EXPECT_TRUE(meets(R"({"pointer":"/a/1","exists":true})", R"({"a":[0,null]})"));
  EXPECT_FALSE(meets(R"({"pointer":"/a/2","exists":true})", R"({"a":[0,null]})"));
  EXPECT_TRUE(meets(R"({"pointer":"/a","exists":false})", "{}"));
  EXPECT_TRUE(meets(R"({"pointer":"/a","exists":false})", ""));
  EXPECT_FALSE(meets(R"({"pointer":"/a","exists":false})", R"({"a":0})"));
}

TEST(Matching, NeedsEveryDemand) {
  constexpr std::string_view kBoth = R"({"pointer":"/a","equals":1},{"pointer":"/b","equals":2})";
  EXPECT_TRUE(meets(kBoth, R"({"a":1,"b":2})"));
  EXPECT_FALSE(meets(kBoth, R"({"a":1,"b":3})"));
}

}  // namespace
}  // namespace hapax
