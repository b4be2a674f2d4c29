#include "core/notes.h"

#include <gtest/gtest.h>

namespace hapax {
namespace {

Execution running(std::int32_t attempt = 1) {
  Execution execution;
  execution.attempt = attempt;
  return execution;
}

TEST(Notes, TheLastProgressCountsAndLinesAddUp) {
  Execution execution = running();
  take_note(execution, "1", {"a"});
  take_note(execution, std::nullopt, {"b", "c"});
  take_note(execution, R"({"done":2})", {});
  EXPECT_EQ(*read_notes(execution), (Notes{1, R"({"done":2})", {"a", "b", "c"}, 0}));
}

TEST(Notes, TheNextAttemptBeginsAnewWithItsFirstWord) {
  Execution execution = running(1);
  take_note(execution, "1", {"a"});
  execution.attempt = 2;
  EXPECT_EQ(read_notes(execution)->attempt, 1);
  take_note(execution, std::nullopt, {"b"});
  EXPECT_EQ(*read_notes(execution), (Notes{2, std::nullopt, {"b"}, 0}));
}

TEST(Notes, TheLogKeepsItsLatestLinesAndCountsTheOthers) {
  Execution execution = running();
  for (int i = 0; i < 70; ++i) take_note(execution, std::nullopt, {std::string(1024, 'x')});
  take_note(execution, std::nullopt, {"end"});
  const Notes notes = *read_notes(execution);
  EXPECT_EQ(notes.log.size(), 64U);
  EXPECT_EQ(notes.log.back(), "end");
  EXPECT_EQ(notes.dropped, 7);
}

TEST(Notes, NothingSaidChangesNothing) {
  Execution execution = running();
  take_note(execution, std::nullopt, {});
  EXPECT_FALSE(execution.notes);
  EXPECT_FALSE(read_notes(execution));
}

}  // namespace
}  // namespace hapax
