#include "cli/handler_environment.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hapax {
namespace {

const Variables kOwn{{"PATH", "/bin"}, {"HOME", "/root"},         {"LC_ALL", "C"},
                     {"LANG", "C"},    {"HAPAX_TOKEN", "secret"}, {"AWS_SECRET_KEY", "secret"},
                     {"MODE", "fast"}, {"PGPASSWORD", "secret"}};

TEST(HandlerEnvironment, HasWhatEveryProgramNeedsAndNothingElse) {
  EXPECT_EQ(handler_environment(kOwn, {}),
            (Variables{{"PATH", "/bin"}, {"HOME", "/root"}, {"LC_ALL", "C"}, {"LANG", "C"}}));
}

TEST(HandlerEnvironment, HasWhatIsAskedFor) {
  const Variables variables = handler_environment(kOwn, {"MODE", "ABSENT", "LEVEL=3", "EMPTY=", "PATH=/opt=x"});
  EXPECT_EQ(variables.at("MODE"), "fast");
  EXPECT_FALSE(variables.contains("ABSENT"));
  EXPECT_EQ(variables.at("LEVEL"), "3");
  EXPECT_EQ(variables.at("EMPTY"), "");
  EXPECT_EQ(variables.at("PATH"), "/opt=x");
  EXPECT_FALSE(variables.contains("HAPAX_TOKEN"));
}

TEST(HandlerEnvironment, AVariableNeedsAName) {
  EXPECT_THROW(handler_environment(kOwn, {"=x"}), std::invalid_argument);
  EXPECT_THROW(handler_environment(kOwn, {""}), std::invalid_argument);
}

}  // namespace
}  // namespace hapax
