#include "core/update.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

TEST(Update, PayloadAndKeyAreReadBack) {
  const auto update = read_update(write_update("key \"1\"", R"({"a":1})"));
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->request_key, "key \"1\"");
  EXPECT_EQ(update->payload, R"({"a":1})");
  EXPECT_EQ(read_update(write_update("k", std::nullopt))->payload, "");
}

TEST(Update, WhatIsNoUpdateIsNone) {
  for (const char* text : {"", "1", "{}", R"({"payload":1})", R"({"request_key":7})"}) {
    EXPECT_FALSE(read_update(text).has_value()) << text;
  }
}

TEST(Update, AnswersAreReadBack) {
  for (const UpdateAnswer& answer : {UpdateAnswer{"[1]", {}}, UpdateAnswer{"null", {}}, UpdateAnswer{},
                                     UpdateAnswer{{}, AttemptError{"Refused", "no"}}}) {
    EXPECT_EQ(read_answer(write_answer(answer)), answer);
  }
  EXPECT_FALSE(read_answer("7").has_value());
}

TEST(Update, NamesOfSignalsAreNotHapaxsOwn) {
  EXPECT_TRUE(check_signal_name("hapax.update:x").has_value());
  EXPECT_FALSE(check_signal_name("hapax").has_value());
  EXPECT_TRUE(check_update_name(std::string(201, 'x')).has_value());
  EXPECT_TRUE(check_update_name("").has_value());
  EXPECT_FALSE(check_update_name("hapax.x").has_value());
  EXPECT_TRUE(is_update_answer(update_answer("k")));
}

}  // namespace
}  // namespace hapax
