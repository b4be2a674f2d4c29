#include "core/signal_target.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

std::string target(const std::string& text, const std::string& event = R"({"subject":"s","data":{"n":7,"a/b":true}})") {
  const auto made = signal_target(text, parse_json(event));
  const auto* none = std::get_if<NoSignalTarget>(&made);
  return none ? "none: " + none->why : std::get<std::string>(made);
}

TEST(SignalTarget, IsMadeFromTheEvent) {
  EXPECT_EQ(target("order"), "order");
  EXPECT_EQ(target("{/subject}"), "s");
  EXPECT_EQ(target("order-{/data/n}-{/data/a~1b}!"), "order-7-true!");
}

TEST(SignalTarget, SaysWhatTheEventLacks) {
  EXPECT_EQ(target("{/data}"), "none: the event has no text or number at /data");
  EXPECT_EQ(target("{/data/x}"), "none: the event has no text or number at /data/x");
  EXPECT_EQ(target("{/subject}", R"({"subject":""})").substr(0, 5), "none:");
}

TEST(SignalTarget, IsCheckedBefore) {
  EXPECT_FALSE(check_signal_target("order-{/data/order_id}").has_value());
  for (const char* text : {"", " ", "{", "}", "{}", "{a}", "{/a", "a}", "{{/a}}"}) {
    EXPECT_TRUE(check_signal_target(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace hapax
