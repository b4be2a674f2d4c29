#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "store/memory/memory_store.h"

namespace hapax {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Cli : public testing::Test {
 protected:
  int run(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    return run_cli(std::move(arguments), program_);
  }

  SystemClock clock_;
  std::ostringstream out_, err_;
  std::string opened_;
  Program program_{"1.2.3", {}, out_, err_, false, [this](const std::string& url) -> std::unique_ptr<Store> {
                     opened_ = url;
                     if (url == "sqlite:/nowhere/x.db") throw Failure(Failure::Code::misuse, "cannot open /nowhere/x.db");
                     return open_memory_store(clock_);
                   }};
};

TEST_F(Cli, PrintsItsVersion) {
  EXPECT_EQ(run({"version"}), kOk);
  EXPECT_EQ(out_.str(), "hapax 1.2.3\n");
  EXPECT_EQ(run({"--version"}), kOk);
  EXPECT_EQ(out_.str(), "hapax 1.2.3\n");
}

TEST_F(Cli, HelpNamesTheCommands) {
  EXPECT_EQ(run({"--help"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("serve"), HasSubstr("migrate"), HasSubstr("hapax.toml")));
  EXPECT_EQ(run({"serve", "--help"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("--listen"), HasSubstr("--store"), HasSubstr("127.0.0.1:7373")));
}

TEST_F(Cli, NoCommandIsAUsageErrorWithHelp) {
  EXPECT_EQ(run({}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("serve"));
}

TEST_F(Cli, UnknownCommandSuggestsTheNearest) {
  EXPECT_EQ(run({"sevre"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown command \"sevre\"; did you mean \"serve\"?\n"));
  EXPECT_EQ(run({"sevre", "--listen", "127.0.0.1:0"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown command \"sevre\"; did you mean \"serve\"?\n"));
}

TEST_F(Cli, UnknownFlagSuggestsTheNearest) {
  EXPECT_EQ(run({"serve", "--lisen", "127.0.0.1:0"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown flag --lisen; did you mean \"--listen\"?\n"));
  EXPECT_EQ(run({"serve", "--stroe=memory:"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown flag --stroe; did you mean \"--store\"?\n"));
}

TEST_F(Cli, FlagWithoutItsValueIsAUsageError) {
  EXPECT_EQ(run({"serve", "--listen"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--listen"));
}

TEST_F(Cli, ArgumentThatNothingTakesIsAUsageError) {
  EXPECT_EQ(run({"migrate", "now"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: migrate takes no argument \"now\"\n"));
}

TEST_F(Cli, BadConfigurationIsAUsageErrorThatNamesTheFlag) {
  EXPECT_EQ(run({"serve", "--listen", "nowhere"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: --listen: [server] listen: \"nowhere\" is no address"));
  EXPECT_EQ(run({"serve", "--config", "/nowhere/hapax.toml"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: /nowhere/hapax.toml: cannot read"));
}

TEST_F(Cli, MigrateOpensTheNamedStore) {
  EXPECT_EQ(run({"migrate", "--store", "sqlite:orders.db"}), kOk);
  EXPECT_EQ(opened_, "sqlite:orders.db");
  EXPECT_EQ(out_.str(), "sqlite:orders.db is up to date\n");
}

TEST_F(Cli, StoreThatCannotBeOpenedIsOneLineAndExitOne) {
  EXPECT_EQ(run({"migrate", "--store", "sqlite:/nowhere/x.db"}), kFailed);
  EXPECT_EQ(err_.str(), "hapax: cannot open /nowhere/x.db\n");
}

}  // namespace
}  // namespace hapax
