#include "core/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace hapax {
namespace {

TEST(JsonWriter, PutsCommasBetweenMembersAndItems) {
  JsonWriter json;
  json.begin_object();
  json.key("a").integer(1);
  json.key("b").begin_array().string("x").begin_array().end_array().begin_object().end_object().null().end_array();
  json.key("c").begin_object().key("d").boolean(true).key("e").number(0.5).end_object();
  json.key("f").raw("[1,2]");
  json.end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":["x",[],{},null],"c":{"d":true,"e":0.5},"f":[1,2]})");
  EXPECT_EQ(json.take(), R"({"a":1,"b":["x",[],{},null],"c":{"d":true,"e":0.5},"f":[1,2]})");
}

TEST(JsonWriter, EscapesNamesAndStrings) {
  JsonWriter json;
  json.begin_object().key("a\"b").string("line\n\x01€").end_object();
  EXPECT_EQ(json.text(), "{\"a\\\"b\":\"line\\n\\u0001€\"}");
}

TEST(JsonWriter, WritesEveryInteger) {
  JsonWriter json;
  json.begin_array();
  json.integer(std::numeric_limits<std::int64_t>::min()).integer(0).integer(std::numeric_limits<std::int64_t>::max());
  json.end_array();
  EXPECT_EQ(json.text(), "[-9223372036854775808,0,9223372036854775807]");
}

}  // namespace
}  // namespace hapax
