#include "core/canonical_json.h"

#include <gtest/gtest.h>

#include <bit>

namespace hapax {
namespace {

std::string canonical(std::string_view text) { return canonical_json(parse_json(text)); }

TEST(CanonicalJson, PrintsTheExampleOfRfc8785Section322) {
  EXPECT_EQ(canonical(R"({
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    })"),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
            "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST(CanonicalJson, SortsAsTheExampleOfRfc8785Section323) {
  EXPECT_EQ(canonical(R"({
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    })"),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\","
            "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\","
            "\"\uFB33\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST(CanonicalJson, PrintsTheNumbersOfRfc8785AppendixB) {
  const std::vector<std::pair<std::uint64_t, std::string>> samples{{0x0000000000000000, "0"},
                                                                   {0x8000000000000000, "0"},
                                                                   {0x0000000000000001, "5e-324"},
                                                                   {0x8000000000000001, "-5e-324"},
                                                                   {0x7fefffffffffffff, "1.7976931348623157e+308"},
                                                                   {0xffefffffffffffff, "-1.7976931348623157e+308"},
                                                                   {0x4340000000000000, "9007199254740992"},
                                                                   {0xc340000000000000, "-9007199254740992"},
                                                                   {0x4430000000000000, "295147905179352830000"},
                                                                   {0x44b52d02c7e14af5, "9.999999999999997e+22"},
                                                                   {0x44b52d02c7e14af6, "1e+23"},
                                                                   {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
                                                                   {0x444b1ae4d6e2ef4e, "999999999999999700000"},
                                                                   {0x444b1ae4d6e2ef4f, "999999999999999900000"},
                                                                   {0x444b1ae4d6e2ef50, "1e+21"},
                                                                   {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
                                                                   {0x3eb0c6f7a0b5ed8d, "0.000001"},
                                                                   {0x41b3de4355555553, "333333333.3333332"},
                                                                   {0x41b3de4355555554, "333333333.33333325"},
                                                                   {0x41b3de4355555555, "333333333.3333333"},
                                                                   {0x41b3de4355555556, "333333333.3333334"},
                                                                   {0x41b3de4355555557, "333333333.33333343"},
                                                                   {0xbecbf647612f3696, "-0.0000033333333333333333"},
                                                                   {0x43143ff3c1cb0959, "1424953923781206.2"}};
  for (const auto& [bits, text] : samples) EXPECT_EQ(canonical_number(std::bit_cast<double>(bits)), text);
}

TEST(CanonicalJson, IntegersKeepEveryDigit) {
  EXPECT_EQ(canonical("9007199254740993"), "9007199254740993");
  EXPECT_NE(canonical("9007199254740993"), canonical("9007199254740992"));
  EXPECT_EQ(canonical("-9007199254740993"), "-9007199254740993");
  EXPECT_EQ(canonical("18446744073709551617"), "18446744073709551617");
  EXPECT_EQ(canonical("123456789012345678901234567890"), "123456789012345678901234567890");
  const std::string long_one(400, '7');
  EXPECT_EQ(canonical(long_one), long_one);
  EXPECT_EQ(canonical("1" + std::string(399, '0')), "1" + std::string(399, '0'));
}

TEST(CanonicalJson, TheSameNumberWrittenDifferentlyIsTheSame) {
  for (const char* text : {"1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"}) EXPECT_EQ(canonical(text), "1") << text;
  for (const char* text : {"0", "-0", "0.0", "-0.0", "0e5", "1e-400", "-1e-400"})
    EXPECT_EQ(canonical(text), "0") << text;
  for (const char* text : {"1e20", "100000000000000000000"})
    EXPECT_EQ(canonical(text), "100000000000000000000") << text;
}

TEST(CanonicalJson, ALongIntegerTakesTheExponentFormWhereItSaysTheSame) {
  EXPECT_EQ(canonical("1000000000000000000000"), "1e+21");
  EXPECT_EQ(canonical("1e21"), "1e+21");
  EXPECT_EQ(canonical("-1500000000000000000000"), "-1.5e+21");
  EXPECT_EQ(canonical("100000000000000000000000"), "1e+23");
  EXPECT_EQ(canonical("1000000000000000000001"), "1000000000000000000001");
  EXPECT_EQ(canonical("999999999999999999999"), "999999999999999999999");
}

TEST(CanonicalJson, StringsHaveTheShortestEscapes) {
  EXPECT_EQ(canonical(R"("\u0008\u0009\u000a\u000c\u000d\u0022\u005c\u002f\u007f\u0000\u001F")"),
            "\"\\b\\t\\n\\f\\r\\\"\\\\/\x7f\\u0000\\u001f\"");
}

TEST(CanonicalJson, EscapesWhereverInALongStringTheyStand) {
  for (std::size_t place = 0; place < 20; ++place) {
    std::string text(20, '\x7f'), expected(20, '\x7f');
    text[place] = '"';
    expected.replace(place, 1, "\\\"");
    std::string out;
    append_json_string(out, text + "\xc3\xa9\x1f!");
    EXPECT_EQ(out, '"' + expected + "\xc3\xa9\\u001f!" + '"');
  }
}

TEST(CanonicalJson, SortsAtEveryLevelAndKeepsTheOrderOfArrays) {
  EXPECT_EQ(canonical(R"({"b":[{"d":1,"c":2},3,1],"aa":{},"a":[],"":0})"),
            R"({"":0,"a":[],"aa":{},"b":[{"c":2,"d":1},3,1]})");
}

TEST(CanonicalJson, CharactersAboveTheBasicPlaneSortBeforeItsLastOnes) {
  EXPECT_EQ(canonical("{\"\uE000\":1,\"\U00010000\":2,\"\uD7FF\":3,\"\uFFFF\":4,\"\U0010FFFF\":5}"),
            "{\"\uD7FF\":3,\"\U00010000\":2,\"\U0010FFFF\":5,\"\uE000\":1,\"\uFFFF\":4}");
}

TEST(CanonicalJson, IsItsOwnCanonicalForm) {
  for (const char* text : {"333333333.33333329e12", "1e21", "123456789012345678901234567890", "5e-324", "1.5e300",
                           R"({"z":[1,2,{"y":null,"x":"\u0001"}]})"}) {
    const std::string once = canonical(text);
    EXPECT_EQ(canonical(once), once);
  }
}

}  // namespace
}  // namespace hapax
