#include "cli/table.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

const Paint kPlain(false), kColoured(true);

TEST(Table, AlignsColumnsAndNumbers) {
  Table table({"queue", ">pending", "note"});
  table.add({"a", "7", "x"});
  table.add({"payments", "1200", ""});
  EXPECT_EQ(table.render(kPlain),
            "queue     pending  note\n"
            "a               7  x\n"
            "payments     1200\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"key", "b"});
  table.add({"żółw", "1"});
  table.add({"abcdef", "2"});
  EXPECT_EQ(table.render(kPlain),
            "key     b\n"
            "żółw    1\n"
            "abcdef  2\n");
}

TEST(Table, CutsTheLastColumnToTheWidth) {
  Table table({"id", "error"});
  table.add({"1", "a very long story of what went wrong"});
  EXPECT_EQ(table.render(kPlain, 20),
            "id  error\n"
            "1   a very long sto…\n");
}

TEST(Table, ColoursDoNotShiftColumns) {
  Table table({"status", "key"});
  table.add({Cell("failed", Colour::red), "k"});
  EXPECT_EQ(table.render(kColoured), "\x1b[1mstatus\x1b[0m  \x1b[1mkey\x1b[0m\n\x1b[31mfailed\x1b[0m  k\n");
}

TEST(Table, ControlCharactersOfOthersNeverReachTheTerminal) {
  Table table({"key"});
  table.add({"a\x1b[2Jb\nc\xc2\x9b"});
  EXPECT_EQ(table.render(kPlain), "key\na [2Jb c\n");
}

TEST(Fields, LabelsAreAligned) {
  EXPECT_EQ(render_fields(kPlain, {{"id", "1"}, {"status", "failed"}}), "id      1\nstatus  failed\n");
}

TEST(Age, HasOneUnit) {
  using namespace std::chrono;
  EXPECT_EQ(format_age(Duration(450)), "450ms");
  EXPECT_EQ(format_age(seconds(119)), "119s");
  EXPECT_EQ(format_age(minutes(5)), "5m");
  EXPECT_EQ(format_age(hours(47)), "47h");
  EXPECT_EQ(format_age(days(4)), "4d");
  EXPECT_EQ(format_age(Duration(-5)), "0ms");
}

TEST(Age, RelativeKnowsPastAndFuture) {
  const Time now = from_ms(1'000'000);
  EXPECT_EQ(relative(now, now), "just now");
  EXPECT_EQ(relative(now - std::chrono::minutes(5), now), "5m ago");
  EXPECT_EQ(relative(now + std::chrono::minutes(5), now), "in 5m");
}

}  // namespace
}  // namespace hapax
