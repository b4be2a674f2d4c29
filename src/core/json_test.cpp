#include "core/json.h"

#include <gtest/gtest.h>

#include "core/canonical_json.h"

namespace hapax {
namespace {

// What is wrong with a text, "" if nothing is.
std::string error_of(std::string_view text) {
  try {
    parse_json(text);
    return "";
  } catch (const InvalidJson& error) {
    return error.what();
  }
}

TEST(Json, MembersStayInTheirOrder) {
  const Json json = parse_json(R"( {"b": 1, "a": [true, null, "x"], "": {}} )");
  ASSERT_TRUE(json.is(Json::Kind::object));
  ASSERT_EQ(json.members.size(), 3u);
  EXPECT_EQ(json.members[0].first, "b");
  EXPECT_EQ(json.members[1].first, "a");
  EXPECT_EQ(json.members[2].first, "");
  ASSERT_EQ(json.find("a")->items.size(), 3u);
  EXPECT_TRUE(json.find("a")->items[0].boolean);
  EXPECT_EQ(json.find("missing"), nullptr);
  EXPECT_EQ(json.find("a")->find("b"), nullptr);
}

TEST(Json, NumbersKeepTheirText) {
  const Json json = parse_json("[1.50, 1E+2, -0, 123456789012345678901234567890, 0.1e-7]");
  EXPECT_EQ(json.items[0].text, "1.50");
  EXPECT_EQ(json.items[1].text, "1E+2");
  EXPECT_EQ(json.items[2].text, "-0");
  EXPECT_EQ(json.items[3].text, "123456789012345678901234567890");
  EXPECT_EQ(json.items[4].text, "0.1e-7");
}

TEST(Json, AnIntegerIsOneOnlyIfWrittenAsOneAndFitting) {
  const auto as_int = [](std::string_view text) { return parse_json(text).as_int(); };
  EXPECT_EQ(as_int("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(as_int("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(as_int("-0"), 0);
  EXPECT_EQ(as_int("9223372036854775808"), std::nullopt);
  EXPECT_EQ(as_int("1.0"), std::nullopt);
  EXPECT_EQ(as_int("1e2"), std::nullopt);
  EXPECT_EQ(as_int("\"1\""), std::nullopt);
}

TEST(Json, DoublesAreTheNearestOnes) {
  const auto as_double = [](std::string_view text) { return parse_json(text).as_double(); };
  EXPECT_EQ(as_double("0.1"), 0.1);
  EXPECT_EQ(as_double("9007199254740993"), 9007199254740992.0);
  EXPECT_EQ(as_double("2.2250738585072011e-308"), 2.2250738585072011e-308);
  EXPECT_EQ(as_double("1.7976931348623157e308"), 1.7976931348623157e308);
  EXPECT_EQ(as_double("1e-400"), 0.0);
  EXPECT_EQ(as_double(std::string(400, '9')), std::nullopt);
  EXPECT_EQ(as_double("true"), std::nullopt);
}

TEST(Json, NumbersBeyondADoubleAreRefusedUnlessIntegers) {
  EXPECT_EQ(error_of("1e400"), "line 1, column 1: the number is too large for a double");
  EXPECT_EQ(error_of("[0, -1e309]"), "line 1, column 5: the number is too large for a double");
  EXPECT_NE(error_of("1" + std::string(400, '0') + ".0"), "");
  EXPECT_EQ(error_of("1" + std::string(400, '0') + "e-399"), "");
  EXPECT_EQ(error_of("0." + std::string(400, '0') + "1e402"), "");
  EXPECT_EQ(error_of("0e400"), "");
  EXPECT_EQ(error_of(std::string(1000, '9')), "");
  EXPECT_EQ(error_of("-" + std::string(1000, '9')), "");
  EXPECT_EQ(error_of(std::string(1001, '9')),
            "line 1, column 1: an integer of 1001 digits is too long, 1000 are the most");
  EXPECT_NE(error_of("1e99999999999"), "");
}

TEST(Json, OnlyTheNumbersOfTheGrammarAreTaken) {
  for (const char* text : {"01", "+1", "1.", ".5", "-", "-.5", "1e", "1e+", "1.e5", "0x10", "NaN", "-NaN", "Infinity",
                           "-Infinity", "1_000", "1,5", "--1", "00", "-01"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Json, AMemberNamedTwiceIsRefusedWhereItIsNamedAgain) {
  EXPECT_EQ(error_of("{\"a\":1,\n \"b\":2,\n \"a\":3}"), "line 3, column 2: the member \"a\" is named twice");
  EXPECT_EQ(error_of(R"({"\u0061x":1,"ax":2})"), "line 1, column 14: the member \"ax\" is named twice");
  EXPECT_EQ(error_of(R"({"a\"":1, "a\u0022":2})"), "line 1, column 11: the member \"a\"\" is named twice");
  EXPECT_EQ(error_of(R"([{"x":{"":1,"":2}}])"), "line 1, column 13: the member \"\" is named twice");
  EXPECT_EQ(error_of(R"({"a":{"a":1},"b":{"a":1}})"), "");
}

TEST(Json, AMemberNamedTwiceIsFoundAmongMany) {
  for (int count : {15, 16, 17, 18, 1000}) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"member " + std::to_string(i) + "\":" + std::to_string(i) + ",";
    EXPECT_EQ(error_of(text + "\"last\":1}"), "") << count;
    for (int again : {0, count / 2, count - 1}) {
      const std::string name = "\"member " + std::to_string(again) + "\"";
      EXPECT_TRUE(error_of(text + name + ":1}").ends_with("the member " + name + " is named twice")) << count;
    }
  }
}

TEST(Json, MalformedUtf8IsRefusedWhereItStands) {
  EXPECT_EQ(error_of("{\"é\":\"\xff\"}"), "line 1, column 7: the byte 0xff is no UTF-8 here");
  for (const char* bad :
       {"\xff", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xf0\x9f\x98", "\xc3"}) {
    const std::string sequence = bad;
    for (const std::string& before : {std::string(), std::string("plain"), std::string("\\n"), std::string("€")}) {
      for (const std::string& after : {std::string("\""), std::string("x\""), std::string("\\n\""), std::string()}) {
        const std::string text = "\"" + before + sequence + after;
        try {
          parse_json(text);
          ADD_FAILURE() << text;
        } catch (const InvalidJson& error) {
          EXPECT_EQ(error.offset(), 1 + before.size()) << text;
          EXPECT_NE(std::string(error.what()).find("is no UTF-8 here"), std::string::npos) << error.what();
        }
      }
    }
  }
}

TEST(Json, LongStringsOfEveryMixtureComeThroughWhole) {
  // Boost unescapes through a buffer of its own: characters must survive its seams.
  for (std::size_t padding = 4070; padding < 4110; ++padding) {
    const std::string plain(padding, 'x');
    const std::string text = "\"\\n" + plain + "€😀é\\ud83d\\ude00\\u20ac" + plain + "😀\\t\"";
    EXPECT_EQ(parse_json(text).text, "\n" + plain + "€😀é😀€" + plain + "😀\t") << padding;
    EXPECT_EQ(parse_json("{" + text + ":1}").members[0].first, "\n" + plain + "€😀é😀€" + plain + "😀\t") << padding;
  }
}

TEST(Json, LoneSurrogatesAreRefused) {
  for (const char* text : {R"("\ud800")", R"("\ud800x")", R"("\ud800\n")", R"("\ud800\u0041")", R"("\udc00")",
                           R"("\uDBFF\uD800")", R"("\udfff\ud800")", R"({"\ud800":1})"}) {
    EXPECT_NE(error_of(text).find("a surrogate without its other half"), std::string::npos) << text << error_of(text);
  }
  EXPECT_EQ(parse_json(R"("\ud83d\ude00")").text, "😀");
}

TEST(Json, NulIsACharacterOnlyIfEscaped) {
  EXPECT_EQ(parse_json(R"("a\u0000b")").text, std::string("a\0b", 3));
  EXPECT_EQ(error_of(std::string_view("\"a\0b\"", 5)),
            "line 1, column 3: a control character (0x00) must not stand here");
  EXPECT_NE(error_of(std::string_view("1\0", 2)), "");
}

TEST(Json, ErrorsSayWhere) {
  EXPECT_EQ(error_of(""), "line 1, column 1: there is no document, only nothing or blanks");
  EXPECT_EQ(error_of("{\"a\": 1,\n  \"b\" 2}"), "line 2, column 7: unexpected '2'");
  EXPECT_EQ(error_of("[1, 2"), "line 1, column 6: the document ends too early");
  EXPECT_EQ(error_of("{} {}"), "line 1, column 4: more text follows after the document: unexpected '{'");
  EXPECT_EQ(error_of("\"a\nb\""), "line 1, column 3: a control character (0x0a) must not stand here");
  EXPECT_EQ(error_of("\xEF\xBB\xBF{}"), "line 1, column 1: a byte order mark must not stand before the document");
  EXPECT_EQ(error_of(R"("\u12g4")"), "line 1, column 6: a \\u escape needs four hex digits");
}

TEST(Json, ExtensionsOfOtherParsersAreRefused) {
  for (const char* text :
       {"[1,]", "{\"a\":1,}", "// x\n1", "/* x */1", "1 // x", "'a'", "{a:1}", "[1 2]", "{\"a\"}", "True", "nil", "tru",
        "nullx", "\"\\x41\"", "\"\\'\"", "\v1", "[,1]", "{,}", "\"tab\there\""}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Json, NestsToItsLimitAndNoDeeper) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(128)), "");
  EXPECT_EQ(error_of(nested(129)), "line 1, column 129: more than 128 levels of arrays and objects");
  EXPECT_NE(error_of(std::string(1'000'000, '[')), "");
}

TEST(JsonPointer, LeadsToWhatRfc6901Says) {
  const Json json = parse_json(R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"m~n":8,"o":{"p":null},"~1":9})");
  EXPECT_EQ(json.at(""), &json);
  EXPECT_EQ(json.at("/foo"), json.find("foo"));
  EXPECT_EQ(json.at("/foo/0")->text, "bar");
  EXPECT_EQ(json.at("/foo/1")->text, "baz");
  EXPECT_EQ(json.at("/")->text, "0");
  EXPECT_EQ(json.at("/a~1b")->text, "1");
  EXPECT_EQ(json.at("/c%d")->text, "2");
  EXPECT_EQ(json.at("/m~0n")->text, "8");
  EXPECT_EQ(json.at("/~01")->text, "9");
  ASSERT_NE(json.at("/o/p"), nullptr);
  EXPECT_TRUE(json.at("/o/p")->is(Json::Kind::null));
  for (const char* pointer : {"foo", "/bar", "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/ 1", "/foo/", "/o/p/q",
                              "/m~n", "/foo/99999999999999999999", "/foo/0/x"}) {
    EXPECT_EQ(json.at(pointer), nullptr) << pointer;
  }
}

TEST(JsonPointer, TildeStandsOnlyInEscapes) {
  EXPECT_TRUE(is_json_pointer(""));
  EXPECT_TRUE(is_json_pointer("/"));
  EXPECT_TRUE(is_json_pointer("/a~0~1/b"));
  for (const char* text : {"a", "a/b", "/~", "/~2", "/a~", " /a"}) EXPECT_FALSE(is_json_pointer(text)) << text;
}

TEST(JsonPointer, StepsAreEscapedSoThatTheyLeadBack) {
  EXPECT_EQ(pointer_step("a/b~c"), "a~1b~0c");
  const Json json = parse_json(R"({"a/b~1":7})");
  EXPECT_EQ(json.at("/" + pointer_step("a/b~1"))->text, "7");
}

}  // namespace
}  // namespace hapax
