#include "core/identity.h"

#include <gtest/gtest.h>

#include <set>

#include "core/canonical_json.h"

namespace hapax {
namespace {

IdentityParts parts(std::string_view name_space, std::string_view type, std::string_view queue,
                    std::string_view scope) {
  return {.name_space = name_space, .type = type, .queue = queue, .scope = Scope::parse(scope)};
}

const IdentityParts kCharge = parts("default", "charge_customer", "payments", "type");

IdentityHash contextual(std::string_view input, const std::vector<std::string>& fields) {
  return std::get<IdentityHash>(hash_contextual(kCharge, parse_json(input), fields));
}

// Written down once and for all: these hashes are in people's databases.
TEST(Identity, HashesAreThoseOfTheDocumentedArray) {
  // ["hapax/1","default","type","charge_customer","caller_provided","charge-order-456"]
  EXPECT_EQ(hash_key(kCharge, "charge-order-456").to_string(),
            "sha256:c9e7a1bb69c37d057a888ae8fed77577657d9dbb458ac4f2283ba02103cb061b");
  // ["hapax/1","default","queue","payments","strict",{"a":1,"b":[2]}]
  EXPECT_EQ(hash_strict(parts("default", "t", "payments", "queue"), parse_json(R"({"b":[2.0], "a":1})")).to_string(),
            "sha256:8f3e9cb9507ae4ac9cac2e36ba21de4e0fb91c0f583a62819cb98e56e73b9550");
  // ["hapax/1","default","custom","tenant","contextual",{"/a":1,"/b/0":2}]
  const auto hash =
      hash_contextual(parts("default", "t", "q", "tenant"), parse_json(R"({"b":[2],"c":3,"a":1})"), {"/b/0", "/a"});
  EXPECT_EQ(std::get<IdentityHash>(hash).to_string(),
            "sha256:f403e2acc739eaf7ee9406e1b16061da8f50693271f5473495722da39d3ab5dd");
}

TEST(Identity, PartsAreNotJoinedIntoOneText) {
  EXPECT_NE(hash_key(parts("a:b", "c", "q", "type"), "k"), hash_key(parts("a", "b:c", "q", "type"), "k"));
  EXPECT_NE(hash_key(parts("default", "t", "q", "type"), "a\",\"b"),
            hash_key(parts("default", "t\",\"a", "q", "type"), "b"));
  EXPECT_NE(hash_key(parts("default", "ab", "q", "type"), "c"), hash_key(parts("default", "a", "q", "type"), "bc"));
}

TEST(Identity, ScopesAreTagged) {
  const std::set<IdentityHash> hashes{
      hash_key(parts("default", "payments", "payments", "type"), "k"),
      hash_key(parts("default", "payments", "payments", "queue"), "k"),
      hash_key(parts("default", "payments", "payments", "global"), "k"),
      hash_key(parts("default", "payments", "payments", "payments"), "k"),
      hash_key({.name_space = "default", .type = "t", .queue = "q", .scope = {Scope::Tag::custom, ""}}, "k"),
  };
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(Identity, DependsOnlyOnWhatItsScopeSays) {
  EXPECT_EQ(hash_key(parts("n", "t", "q1", "type"), "k"), hash_key(parts("n", "t", "q2", "type"), "k"));
  EXPECT_EQ(hash_key(parts("n", "t1", "q", "queue"), "k"), hash_key(parts("n", "t2", "q", "queue"), "k"));
  EXPECT_EQ(hash_key(parts("n", "t1", "q1", "global"), "k"), hash_key(parts("n", "t2", "q2", "global"), "k"));
  EXPECT_EQ(hash_key(parts("n", "t1", "q1", "mine"), "k"), hash_key(parts("n", "t2", "q2", "mine"), "k"));
  EXPECT_NE(hash_key(parts("n", "t1", "q", "type"), "k"), hash_key(parts("n", "t2", "q", "type"), "k"));
  EXPECT_NE(hash_key(parts("n", "t", "q1", "queue"), "k"), hash_key(parts("n", "t", "q2", "queue"), "k"));
  EXPECT_NE(hash_key(parts("n1", "t", "q", "global"), "k"), hash_key(parts("n2", "t", "q", "global"), "k"));
}

TEST(Identity, StrategiesNeverMeet) {
  const Json input = parse_json(R"("k")");
  EXPECT_NE(hash_key(kCharge, "k"), hash_strict(kCharge, input));
  EXPECT_NE(hash_strict(kCharge, parse_json(R"({"":"k"})")), contextual(R"("k")", {""}));
}

TEST(Identity, StrictComparesTheCanonicalInput) {
  EXPECT_EQ(hash_strict(kCharge, parse_json(R"({"a":1,"b":2})")),
            hash_strict(kCharge, parse_json(R"({ "b":2.0,"a":1e0})")));
  EXPECT_NE(hash_strict(kCharge, parse_json("9007199254740993")), hash_strict(kCharge, parse_json("9007199254740992")));
}

TEST(Identity, ContextualComparesOnlyItsFields) {
  const std::string one = R"({"order_id":7,"amount":1})", other = R"({"amount":2,"order_id":7})";
  EXPECT_EQ(contextual(one, {"/order_id"}), contextual(other, {"/order_id"}));
  EXPECT_NE(contextual(one, {"/order_id", "/amount"}), contextual(other, {"/order_id", "/amount"}));
  EXPECT_EQ(contextual(one, {"/order_id", "/amount"}), contextual(one, {"/amount", "/order_id", "/amount"}));
  EXPECT_NE(contextual(R"({"a":1,"b":2})", {"/a", "/b"}), contextual(R"({"a":2,"b":1})", {"/a", "/b"}));
  EXPECT_NE(contextual(R"({"a":1})", {"/a"}), contextual(R"({"b":1})", {"/b"}));
}

TEST(Identity, AContextualFieldThatIsAbsentIsNamed) {
  const auto missing = hash_contextual(kCharge, parse_json(R"({"a":{"b":1}})"), {"/a/b", "/a/c", "/d"});
  ASSERT_TRUE(std::holds_alternative<FieldMissing>(missing));
  EXPECT_EQ(std::get<FieldMissing>(missing).pointer, "/a/c");
}

TEST(Identity, AContextualFieldThatIsNullIsThere) {
  EXPECT_NE(contextual(R"({"a":null})", {"/a"}), contextual(R"({"a":"null"})", {"/a"}));
}

TEST(Identity, OnlyACallersKeyComparesTheInput) {
  for (Strategy strategy : {Strategy::strict, Strategy::contextual}) {
    EXPECT_FALSE((Identity{.hash = {}, .strategy = strategy, .scope = {}}.compares_input()));
  }
  EXPECT_TRUE((Identity{.hash = {}, .strategy = Strategy::caller_provided, .scope = {}}.compares_input()));
}

TEST(Identity, TheInputHashIsThatOfTheCanonicalText) {
  EXPECT_EQ(hash_input(canonical_json(parse_json(" { } "))).bytes, sha256("{}"));
}

TEST(ScopeText, IsReadBack) {
  for (const char* text : {"type", "queue", "global", "payments", "Type"})
    EXPECT_EQ(Scope::parse(text).to_string(), text);
  EXPECT_EQ(Scope::parse("type").tag, Scope::Tag::type);
  EXPECT_EQ(Scope::parse("queue").tag, Scope::Tag::queue);
  EXPECT_EQ(Scope::parse("global").tag, Scope::Tag::global);
  EXPECT_EQ(Scope::parse("Type").tag, Scope::Tag::custom);
}

TEST(StrategyText, IsReadBack) {
  for (Strategy strategy :
       {Strategy::caller_provided, Strategy::strict, Strategy::contextual, Strategy::always_unique}) {
    EXPECT_EQ(parse_strategy(to_string(strategy)), strategy);
  }
  EXPECT_EQ(parse_strategy("unique"), std::nullopt);
}

}  // namespace
}  // namespace hapax
