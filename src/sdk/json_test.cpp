#include "hapax/json.h"

#include <gtest/gtest.h>

#include <boost/describe.hpp>

namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Line {
  std::string name;
  std::optional<double> price;
  std::vector<int> sizes;
  Colour colour = Colour::green;
};
BOOST_DESCRIBE_STRUCT(Line, (), (name, price, sizes, colour))

template <class T>
std::string error_of(std::string_view text) {
  try {
    hapax::from_json<T>(text);
  } catch (const hapax::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, AStructGoesThereAndBack) {
  const Line line{"coat", 2.5, {1, 2}, Colour::green};
  const Line back = hapax::from_json<Line>(hapax::to_json(line));
  EXPECT_EQ(back.name, "coat");
  EXPECT_EQ(back.price, 2.5);
  EXPECT_EQ(back.sizes, (std::vector{1, 2}));
  EXPECT_EQ(back.colour, Colour::green);
}

TEST(Json, UnknownMembersArePassedOverAndAbsentOnesKeepTheirDefault) {
  const Line line = hapax::from_json<Line>(R"({"name":"x","added_later":1})");
  EXPECT_EQ(line.name, "x");
  EXPECT_FALSE(line.price);
  EXPECT_TRUE(line.sizes.empty());
  EXPECT_EQ(line.colour, Colour::green);
}

TEST(Json, AMismatchNamesThePlace) {
  EXPECT_EQ(error_of<Line>(R"({"name":"x","sizes":[1,"q"],"colour":"red"})"),
            "/sizes/1: expected a whole number, got a string");
  EXPECT_EQ(error_of<Line>(R"({"name":"x","sizes":[],"colour":"blue"})"), "/colour: 'blue' is no known value");
  EXPECT_EQ(error_of<std::uint8_t>("256"), "256 is no whole number in the range of the type");
}

TEST(Json, StandardTypesGoThereAndBack) {
  using Map = std::map<std::string, std::pair<int, bool>>;
  const Map map{{"a", {1, true}}, {"b", {2, false}}};
  EXPECT_EQ(hapax::from_json<Map>(hapax::to_json(map)), map);
  using Either = std::variant<int, std::string>;
  EXPECT_EQ(hapax::from_json<Either>(R"("x")"), Either("x"));
  EXPECT_EQ((hapax::from_json<std::tuple<int, std::string>>(R"([1,"x"])")), std::tuple(1, std::string("x")));
  EXPECT_EQ(hapax::from_json<std::int64_t>("9007199254740993"), 9007199254740993);
  EXPECT_EQ(hapax::from_json<double>("2"), 2.0);
}

TEST(Json, NothingIsNoText) {
  EXPECT_EQ(hapax::to_json(std::monostate()), "");
  EXPECT_EQ(hapax::from_json<std::optional<int>>(""), std::nullopt);
}

}  // namespace
