#include "core/field.h"

#include <gtest/gtest.h>

#include "core/reuse.h"

namespace hapax {
namespace {

// Reads one member and answers with where and what was wrong, "" if nothing was.
template <class Read>
std::string error_of(std::string_view document, Read read) {
  const Json json = parse_json(document);
  try {
    FieldReader reader(json, "/at");
    read(reader);
    return "";
  } catch (const InvalidField& error) {
    return error.pointer() + " " + error.what();
  }
}

TEST(FieldReader, ReadsEveryForm) {
  const Json json = parse_json(R"({"s":"x","n":"orders","i":-5,"d":1.5,"b":false,"du":"90s","t":"2026-01-27T12:00:00Z",
      "r":"100/sec","l":["a","b"],"o":{},"a":[],"z":null,"w":"reject"})");
  FieldReader reader(json);
  EXPECT_EQ(reader.string("s"), "x");
  EXPECT_EQ(reader.name("n"), "orders");
  EXPECT_EQ(reader.integer("i", -10, 10), -5);
  EXPECT_EQ(reader.number("d", 0, 2), 1.5);
  EXPECT_EQ(reader.boolean("b"), false);
  EXPECT_EQ(reader.duration("du"), Duration(90'000));
  EXPECT_EQ(reader.time("t"), from_ms(1'769'515'200'000));
  EXPECT_EQ(reader.rate("r")->count, 100);
  EXPECT_EQ(reader.strings("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.object("o"), json.find("o"));
  EXPECT_EQ(reader.array("a"), json.find("a"));
  EXPECT_EQ(reader.any("z"), json.find("z"));
  EXPECT_EQ(reader.word("w", parse_reuse, "reject"), Reuse::reject);
  EXPECT_NO_THROW(reader.done());
}

TEST(FieldReader, NullCountsAsAbsent) {
  const Json json = parse_json(R"({"a":null})");
  FieldReader reader(json);
  EXPECT_EQ(reader.string("a"), std::nullopt);
  EXPECT_EQ(reader.string("b"), std::nullopt);
  EXPECT_EQ(reader.integer("a", 0, 1), std::nullopt);
  EXPECT_EQ(reader.duration("a"), std::nullopt);
  EXPECT_EQ(reader.object("a"), nullptr);
  EXPECT_NE(reader.any("a"), nullptr);
  EXPECT_EQ(reader.any("b"), nullptr);
}

TEST(FieldReader, AWholeNumberIsAnIntegerHoweverItIsWritten) {
  const Json document = parse_json(R"({"a":10.0,"b":1e3,"c":-0.0,"d":1.5,"e":1e19,"f":9007199254740993.0})");
  FieldReader reader(document);
  EXPECT_EQ(reader.integer("a", 0, 10), 10);
  EXPECT_EQ(reader.integer("b", 0, 1000), 1000);
  EXPECT_EQ(reader.integer("c", 0, 1), 0);
  for (const char* name : {"d", "e", "f"}) EXPECT_THROW(reader.integer(name, 0, INT64_MAX), InvalidField) << name;
}

TEST(FieldReader, ErrorsNameThePlaceAndWhatIsWanted) {
  const std::string document = R"({"a/b":5,"s":"","f":1.5,"big":99,"l":["x",1],"d":"5 s"})";
  EXPECT_EQ(error_of(document, [](auto& r) { r.string("a/b"); }), "/at/a~1b must be a string");
  EXPECT_EQ(error_of(document, [](auto& r) { r.integer("f", 0, 9); }), "/at/f must be an integer from 0 to 9");
  EXPECT_EQ(error_of(document, [](auto& r) { r.integer("big", 0, 9); }), "/at/big must be an integer from 0 to 9");
  EXPECT_EQ(error_of(document, [](auto& r) { r.number("big", 0.5, 9); }), "/at/big must be a number from 0.5 to 9");
  EXPECT_EQ(error_of(document, [](auto& r) { r.boolean("s"); }), "/at/s must be true or false");
  EXPECT_EQ(error_of(document, [](auto& r) { r.strings("l"); }), "/at/l/1 must be a string");
  EXPECT_EQ(error_of(document, [](auto& r) { r.object("s"); }), "/at/s must be an object");
  EXPECT_EQ(error_of(document, [](auto& r) { r.array("s"); }), "/at/s must be an array");
  EXPECT_TRUE(error_of(document, [](auto& r) { r.name("s"); }).starts_with("/at/s must be 1 to 128 bytes"));
  EXPECT_TRUE(error_of(document, [](auto& r) { r.duration("d"); }).starts_with("/at/d must be a duration such as"));
  EXPECT_TRUE(error_of(document, [](auto& r) { r.time("d"); }).starts_with("/at/d must be an RFC 3339 time"));
  EXPECT_TRUE(error_of(document, [](auto& r) { r.rate("d"); }).starts_with("/at/d must be a rate such as"));
  EXPECT_EQ(error_of(document, [](auto& r) { r.word("d", parse_reuse, "reject, replace"); }),
            "/at/d must be one of reject, replace, not \"5 s\"");
  EXPECT_EQ(error_of(document, [](auto& r) { r.required("x", r.string("x")); }), "/at/x is required");
  EXPECT_EQ(error_of("[]", [](auto&) {}), "/at must be an object");
}

TEST(FieldReader, RefusesWhatWasNotAskedFor) {
  EXPECT_EQ(error_of(R"({"type":"t","quue":"q"})",
                     [](auto& r) {
                       r.string("type");
                       r.string("queue");
                       r.done();
                     }),
            "/at/quue is not known here; known are queue, type");
  EXPECT_EQ(error_of(R"({"quue":"q"})", [](auto& r) { r.done(); }),
            "/at/quue is not known here; this object takes no fields");
}

}  // namespace
}  // namespace hapax
