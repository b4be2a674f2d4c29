#include "core/packed_json.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "core/canonical_json.h"

namespace hapax {
namespace {

constexpr std::array<std::string_view, 2> kPacked{"input", "result"};

Json parse(const std::string& text) { return parse_packed_json(text, kPacked); }

std::string error_of(const std::string& text) {
  try {
    parse(text);
    return "";
  } catch (const InvalidJson& error) {
    return error.what();
  }
}

// Values of all kinds, members in any order, with names that UTF-8 and UTF-16 sort differently.
std::string random_value(std::mt19937& random, int depth) {
  const auto one_of = [&](auto options) { return std::string(options[random() % options.size()]); };
  const auto kind = random() % (depth > 0 ? 8U : 5U);
  if (kind < 5) {
    return one_of(std::array{"null", "true", "false", "-0", "1.50", "1e21", "12345678901234567890123", "\"\"",
                             "\"a\\u0001\"", "\"\\ud83d\\ude00\"", "[]", "{}"});
  }
  std::string out(1, kind == 5 ? '[' : '{');
  const auto size = random() % 6;
  std::vector<std::string> names{R"("b")", R"("a")", R"("\uffff")", R"("\ud83d\ude00")", R"("\"")", R"("")"};
  std::shuffle(names.begin(), names.end(), random);
  for (std::size_t i = 0; i < size; ++i) {
    if (i > 0) out += " ,";
    if (kind != 5) out += names[i] + " : ";
    out += random_value(random, depth - 1);
  }
  return out + (kind == 5 ? ']' : '}');
}

TEST(PackedJson, IsTheSameCanonicalJson) {
  std::mt19937 random(17);
  for (int i = 0; i < 3000; ++i) {
    const std::string text =
        R"({"type":"t","input":)" + random_value(random, 5) + R"(,"more":{"result":)" + random_value(random, 3) + "}}";
    const Json packed = parse(text);
    const Json plain = parse_json(text);
    EXPECT_EQ(canonical_json(packed), canonical_json(plain)) << text;
    EXPECT_EQ(canonical_json(unpacked(*packed.find("input"))), canonical_json(*plain.find("input"))) << text;
    EXPECT_EQ(packed.find("input")->kind, plain.find("input")->kind);
  }
}

TEST(PackedJson, OnlyArraysAndObjectsOfTheNamedMembersArePacked) {
  const Json document = parse(R"({"input":[1,{"b":2,"a":1}],"result":7,"other":{"input":{},"x":[1]}})");
  EXPECT_TRUE(is_packed(*document.find("input")));
  EXPECT_EQ(document.find("input")->text, R"([1,{"a":1,"b":2}])");
  EXPECT_EQ(document.find("result")->as_int(), 7);
  EXPECT_FALSE(is_packed(*document.find("other")));
  EXPECT_TRUE(is_packed(*document.find("other")->find("input")));
  EXPECT_EQ(document.at("/other/x/0")->as_int(), 1);
  EXPECT_THROW(document.at("/input/0"), std::logic_error);
  EXPECT_EQ(unpacked(*document.find("input")).at("/1/b")->as_int(), 2);
}

TEST(PackedJson, ErrorsSayTheSamePlace) {
  for (const std::string text :
       {R"({"input":{"a":1,"b":2,"a":3}})", R"({"input":[1,)", R"({"input":[1e999]})", R"({"input":["\ud800"]})",
        R"({"input":{"a" 1}})", R"({"input":[]} x)", R"({"input":[],"input":[]})", "{\"input\":[\"\xFF\"]}"}) {
    std::string plain;
    try {
      parse_json(text);
    } catch (const InvalidJson& error) {
      plain = error.what();
    }
    EXPECT_NE(plain, "") << text;
    EXPECT_EQ(error_of(text), plain) << text;
  }
  EXPECT_NE(error_of(R"({"input":)" + std::string(129, '[') + std::string(129, ']') + "}"), "");
}

TEST(PackedJson, ValuesOutsideOfPackedOnesAreBounded) {
  const auto many = [](std::string_view name) {
    std::string text = "{\"" + std::string(name) + "\":[1";
    for (int i = 0; i < 250'000; ++i) text += ",1";
    return text + "]}";
  };
  EXPECT_EQ(error_of(many("input")), "");
  EXPECT_NE(error_of(many("tags")).find("more than 200000 values outside of payloads"), std::string::npos);
}

}  // namespace
}  // namespace hapax
