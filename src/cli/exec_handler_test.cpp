#include "cli/exec_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "hapax/error.h"

namespace hapax {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <class Error>
std::string thrown_by(const ChildOutcome& outcome) {
  try {
    result_of(outcome);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing of that type was thrown";
}

TEST(ExecHandler, OutputIsJsonIfItParses) {
  EXPECT_EQ(output_as_json("{\"b\": 1, \"a\": 2}\n"), R"({"a":2,"b":1})");
  EXPECT_EQ(output_as_json("42\n"), "42");
  EXPECT_EQ(output_as_json("null"), "null");
}

TEST(ExecHandler, OtherOutputIsAStringWithoutItsLastLineEnd) {
  EXPECT_EQ(output_as_json("hello\nworld\n"), R"("hello\nworld")");
  EXPECT_EQ(output_as_json("\n"), R"("")");
  EXPECT_EQ(output_as_json("caf\xe9"), R"("caf?")");
}

TEST(ExecHandler, NoOutputIsNoResult) { EXPECT_EQ(result_of({}), ""); }

TEST(ExecHandler, AnExitCodeIsARetryableFailureWithStandardError) {
  ChildOutcome outcome;
  outcome.exit_code = 3;
  outcome.errors = "no such host\n";
  EXPECT_EQ(thrown_by<HandlerFailed>(outcome), "exit code 3: no such host");
}

TEST(ExecHandler, ExitCodeHundredIsFinal) {
  ChildOutcome outcome;
  outcome.exit_code = 100;
  outcome.errors = "card declined";
  EXPECT_EQ(thrown_by<FinalError>(outcome), "exit code 100: card declined");
}

TEST(ExecHandler, ASignalIsARetryableFailure) {
  ChildOutcome outcome;
  outcome.signal = SIGKILL;
  EXPECT_THAT(thrown_by<HandlerFailed>(outcome), StartsWith("killed by signal 9"));
}

TEST(ExecHandler, TooMuchOutputIsFinal) {
  ChildOutcome outcome;
  outcome.too_long = true;
  outcome.signal = SIGKILL;
  EXPECT_THAT(thrown_by<FinalError>(outcome), HasSubstr("8 MiB"));
}

TEST(ExecHandler, ACancelledHandlerIsCancelledHoweverItEnds) {
  ChildOutcome outcome;
  outcome.cancelled = true;
  EXPECT_THROW(result_of(outcome), Cancelled);
}

}  // namespace
}  // namespace hapax
