#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/json.h"
#include "open/open_engine.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// One memory store for all commands of a test, as a file would be.
class Cli : public testing::Test {
 protected:
  int run(std::vector<std::string> arguments, const std::string& input = "") {
    in_.str(input);
    in_.clear();
    out_.str("");
    err_.str("");
    return run_cli(std::move(arguments), program_);
  }

  // The same on the test's own store.
  int on_store(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.end(), {"--store", "memory:"});
    return run(std::move(arguments), input);
  }

  std::string submitted_id() {
    const Json receipt = parse_json(out_.str());
    return receipt.at("/execution/id")->text;
  }

  std::istringstream in_;
  std::ostringstream out_, err_;
  std::string opened_;
  std::shared_ptr<Engine> engine_ = open_engine("memory:").engine;
  Program program_{"1.2.3",
                   {},
                   in_,
                   out_,
                   err_,
                   false,
                   false,
                   [this](const std::string& url, OpenStoreOptions) {
                     opened_ = url;
                     if (url == "sqlite:/nowhere/x.db")
                       throw Failure(Failure::Code::misuse, "cannot open /nowhere/x.db");
                     return open_store("memory:");
                   },
                   [this](const std::string& url, OpenEngineOptions options) {
                     opened_ = url;
                     return url == "memory:" ? engine_ : open_engine(url, std::move(options)).engine;
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

TEST_F(Cli, HelpIsACommandToo) {
  EXPECT_EQ(run({"help"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("migrate"));
  EXPECT_EQ(run({"help", "serve"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("hapax serve"), HasSubstr("--listen")));
  EXPECT_EQ(run({"help", "queues", "set"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("hapax queues set"));
  EXPECT_EQ(run({"help", "sevre"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown command \"sevre\"; did you mean \"serve\"?\n"));
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

TEST_F(Cli, AValueOfTheWrongFormIsToldInWords) {
  EXPECT_EQ(run({"work", "--exec", "cat", "--concurrency", "many"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: --concurrency: \"many\" is not a valid number here\n"));
  EXPECT_EQ(run({"serve", "--listen"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: --listen needs a value\n"));
}

TEST_F(Cli, ReadingCreatesNoStore) {
  const TempDir directory;
  const std::string file = directory.file("hapax.db");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"list"},
                                                  {"get", "019bf2d4-1c2d-7e3f-8a4b-5c6d7e8f9a0b"},
                                                  {"queues"},
                                                  {"types"},
                                                  {"explain", "t"},
                                                  {"release", "--type", "t", "--key", "k", "--yes"},
                                                  {"cancel", "019bf2d4-1c2d-7e3f-8a4b-5c6d7e8f9a0b"}}) {
    auto arguments = command;
    arguments.insert(arguments.end(), {"--store", "sqlite:" + file});
    EXPECT_NE(run(arguments), kOk) << command.front();
    EXPECT_THAT(err_.str(), HasSubstr("does not exist")) << command.front();
    EXPECT_FALSE(std::filesystem::exists(file)) << command.front();
  }
  EXPECT_EQ(run({"submit", "t", "--store", "sqlite:" + file}), kOk) << err_.str();
  EXPECT_EQ(run({"list", "--store", "sqlite:" + file}), kOk) << err_.str();
}

TEST_F(Cli, DoctorSpeaksOfTheStoreItWasGiven) {
  run({"doctor", "--store", "memory:"});
  EXPECT_THAT(out_.str(), HasSubstr("store memory:,"));
}

TEST_F(Cli, ArgumentThatNothingTakesIsAUsageError) {
  EXPECT_EQ(run({"migrate", "now"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: migrate takes no argument \"now\"\n"));
}

TEST_F(Cli, BadConfigurationIsAUsageErrorThatNamesTheFlag) {
  EXPECT_EQ(run({"serve", "--listen", "nowhere"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: --listen: [server] listen: \"nowhere\" is not an address"));
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

TEST_F(Cli, MisspeltFlagIsToldBeforeAMissingArgument) {
  EXPECT_EQ(run({"submit", "--kye", "k"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: unknown flag --kye; did you mean \"--key\"?\n"));
}

TEST_F(Cli, NestedCommandsAreSuggestedToo) {
  EXPECT_EQ(run({"queues", "shwo", "q"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: queues has no command \"shwo\"; did you mean \"show\"?\n"));
}

TEST_F(Cli, ATypeMayHaveTheNameOfACommand) {
  EXPECT_EQ(on_store({"submit", "list", "[1, 2]", "--json"}), kOk);
  const Json receipt = parse_json(out_.str());
  EXPECT_EQ(receipt.at("/execution/type")->text, "list");
  EXPECT_EQ(receipt.at("/execution/input/1")->text, "2");
}

TEST_F(Cli, SubmittingTwiceSaysSo) {
  EXPECT_EQ(on_store({"submit", "greet", "\"Ada\"", "--key", "k"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(StartsWith("created 0"), HasSubstr("in queue default")));
  EXPECT_EQ(on_store({"submit", "greet", "-", "--key", "k"}, "\"Ada\""), kOk);
  EXPECT_THAT(out_.str(), AllOf(StartsWith("already there since 2"), HasSubstr("pending")));
  EXPECT_EQ(on_store({"submit", "greet", "\"Eve\"", "--key", "k"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("another input"));
}

TEST_F(Cli, ABadFieldIsNamedByItsFlag) {
  EXPECT_EQ(on_store({"submit", "t", "--ttl", "soon"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: --ttl must be"));
  EXPECT_EQ(on_store({"submit", "t", "--reuse", "rejct"}), kUsage);
  EXPECT_THAT(err_.str(), AllOf(StartsWith("hapax: --reuse must be one of"), HasSubstr("did you mean \"reject\"?")));
  EXPECT_EQ(on_store({"submit", "t", "{nope"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: INPUT is not JSON: "));
}

TEST_F(Cli, AWordAfterWaitThatIsNoDurationIsTheInput) {
  EXPECT_EQ(on_store({"submit", "t", "--dry-run", "--json", "--wait", "{\"a\":1}"}), kOk);
  EXPECT_EQ(parse_json(out_.str()).at("/execution/input/a")->text, "1");
  EXPECT_EQ(on_store({"submit", "t", "1", "--wait", "long"}), kUsage);
}

TEST_F(Cli, GetListCancelAndRetry) {
  EXPECT_EQ(on_store({"submit", "t", "--json"}), kOk);
  const std::string id = submitted_id();
  EXPECT_EQ(on_store({"get", id}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr(id), HasSubstr("pending")));
  EXPECT_EQ(on_store({"list", "--status", "pending"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr(id));
  EXPECT_EQ(on_store({"cancel", id, "--request-key", "r1"}), kOk);
  EXPECT_EQ(out_.str(), id + " is cancelled\n");
  EXPECT_EQ(on_store({"cancel", id, "--request-key", "r1"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("done before under this request key"));
  EXPECT_EQ(on_store({"retry", id}), kOk);
  EXPECT_THAT(err_.str(), StartsWith("request key cli-"));
  EXPECT_EQ(on_store({"retry", id}), kRefused);
  EXPECT_EQ(on_store({"get", "00000000-0000-7000-8000-000000000000"}), kNotFound);
  EXPECT_EQ(on_store({"get", "me"}), kNotFound);
  EXPECT_EQ(on_store({"list", "--status", "complted"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean \"completed\"?"));
}

TEST_F(Cli, JsonHasNoControlCharactersEvenInAPipe) {
  EXPECT_EQ(on_store({"submit", "t",
                      "\"a\xC2\x9B"
                      "31m\xE2\x80\xAE\"",
                      "--json"}),
            kOk);
  const std::string id = submitted_id();
  EXPECT_THAT(out_.str(), HasSubstr(R"("a\u009b31m\u202e")"));
  EXPECT_EQ(on_store({"get", id, "--json"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr(R"("a\u009b31m\u202e")"));
}

TEST_F(Cli, QueuesAndTypesAreSetAndShown) {
  EXPECT_EQ(on_store({"queues", "set", "mail", "retention=1d", "rate_limit=100/sec"}), kOk);
  EXPECT_EQ(on_store({"queues", "set", "mail", "max_running=5", "rate_limit="}), kOk);
  EXPECT_EQ(on_store({"queues", "show", "mail"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("retention=1d max_running=5\n"));
  EXPECT_EQ(on_store({"queues", "pause", "mail"}), kOk);
  EXPECT_EQ(on_store({"queues"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("paused=true"));
  EXPECT_EQ(on_store({"queues", "show", "nobody"}), kNotFound);
  EXPECT_EQ(on_store({"queues", "set", "mail", "retenton=1d"}), kUsage);
  EXPECT_EQ(on_store({"queues", "set", "mail", "retention=soon"}), kUsage);
  EXPECT_THAT(err_.str(), StartsWith("hapax: retention must be"));
  EXPECT_EQ(on_store({"types", "set", "charge", "identity=contextual", "identity_fields=/order_id"}), kOk);
  EXPECT_EQ(on_store({"types", "list"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("contextual"));
  EXPECT_EQ(on_store({"types", "show", "other"}), kNotFound);
}

TEST_F(Cli, AWorkflowIsStartedOnceShownSignalledForkedAndCancelled) {
  EXPECT_EQ(on_store({"start", "process_order", "order-456", "{\"order\":456}"}), kOk);
  EXPECT_THAT(out_.str(), StartsWith("started order-456 ("));
  EXPECT_EQ(on_store({"start", "process_order", "order-456", "{\"order\":456}"}), kOk);
  EXPECT_THAT(out_.str(), StartsWith("already there since"));
  EXPECT_EQ(on_store({"start", "process_order", "order-456", "7"}), kRefused);
  EXPECT_THAT(err_.str(), StartsWith("hapax: Workflow 'order-456' was"));
  EXPECT_EQ(on_store({"start", "process_order"}), kUsage);
  EXPECT_EQ(on_store({"start", "process_order", " "}), kUsage);
  EXPECT_EQ(on_store({"get", "order-456"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(StartsWith("workflow  order-456\n"), HasSubstr("steps     0, in 0 events")));
  EXPECT_EQ(on_store({"list", "--workflows"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("steps"), HasSubstr("order-456")));
  EXPECT_EQ(on_store({"history", "order-456"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("workflow process_order  started"));
  EXPECT_EQ(on_store({"signal", "order-456", "approve", "{\"by\":\"ada\"}", "--request-key", "k"}), kOk);
  EXPECT_EQ(out_.str(), "sent the signal approve to order-456\n");
  EXPECT_EQ(on_store({"signal", "order-456", "approve", "{\"by\":\"ada\"}", "--request-key", "k"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("(done before under this request key)"));
  EXPECT_EQ(on_store({"signal", "order-456", "approve", "2", "--request-key", "k"}), kRefused);
  EXPECT_EQ(on_store({"signal", "order-456", "approve", "not json"}), kUsage);
  EXPECT_EQ(on_store({"fork", "order-456", "--from-step", "1", "--request-key", "f"}), kOk);
  EXPECT_EQ(out_.str(), "forked order-456 from step 1 as order-456:fork-f\n");
  EXPECT_EQ(on_store({"fork", "order-456", "--from-step", "9"}), kUsage);
  EXPECT_EQ(on_store({"fork", "order-456", "--from-step", "1", "--workflow-id", "order-456"}), kRefused);
  EXPECT_EQ(on_store({"resume", "order-456"}), kOk);
  EXPECT_EQ(out_.str(), "nothing to do: order-456 is pending\n");
  EXPECT_EQ(on_store({"cancel", "order-456"}), kOk);
  EXPECT_EQ(out_.str(), "order-456 is cancelled\n");
  EXPECT_EQ(on_store({"signal", "order-456", "approve"}), kRefused);
  EXPECT_EQ(on_store({"resume", "order-456"}), kOk);
  EXPECT_EQ(out_.str(), "order-456 is pending\n");
  for (const char* command : {"get", "history", "cancel", "resume"}) {
    EXPECT_EQ(on_store({command, "nobody"}), kNotFound) << command;
  }
}

TEST_F(Cli, ReleaseTellsTheOwnerAndAsksAPerson) {
  EXPECT_EQ(on_store({"submit", "t", "--key", "k"}), kOk);
  program_.input_terminal = true;
  EXPECT_EQ(on_store({"release", "--type", "t", "--key", "k"}, "n\n"), kFailed);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("the key 'k' belongs to"), HasSubstr("[y/N]")));
  EXPECT_EQ(on_store({"release", "--type", "t", "--key", "k"}, "y\n"), kOk);
  EXPECT_EQ(on_store({"release", "--type", "t", "--key", "k", "--yes"}), kNotFound);
  EXPECT_EQ(on_store({"release", "--key", "k"}), kUsage);
}

TEST_F(Cli, UrlAndStoreExcludeEachOther) {
  EXPECT_EQ(run({"list", "--url", "http://127.0.0.1:1", "--store", "memory:"}), kUsage);
  EXPECT_EQ(run({"list", "--url", "sqlite:x.db"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--store sqlite:x.db"));
  EXPECT_EQ(run({"list", "--store", "http://127.0.0.1:1"}), kUsage);
  EXPECT_EQ(run({"list", "--store", "mysql:x"}), kUsage);
}

TEST_F(Cli, AServerThatDoesNotAnswerIsUnavailable) {
  EXPECT_EQ(run({"list", "--url", "http://127.0.0.1:1"}), kUnavailable);
}

TEST_F(Cli, TheServerIsTakenFromTheEnvironment) {
  program_.environment = {{"HAPAX_URL", "http://127.0.0.1:1"}, {"HAPAX_NAMESPACE", "n"}};
  run({"list"});
  EXPECT_EQ(opened_, "http://127.0.0.1:1");
}

TEST_F(Cli, CompletionKnowsEveryCommandAndItsFlags) {
  EXPECT_EQ(run({"completion", "bash"}), kOk);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"hapax queues set\""),
                                HasSubstr("allow_failed reject allow_closed replace"), HasSubstr("--concurrency-key")));
  EXPECT_EQ(run({"completion", "bsh"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean \"bash\"?"));
}

TEST_F(Cli, EveryCommandHasHelp) {
  for (const char* command : {"submit", "start",  "get",   "list",    "history",    "cancel", "retry",
                              "signal", "resume", "fork",  "explain", "release",    "queues", "types",
                              "work",   "top",    "bench", "doctor",  "completion", "serve",  "migrate"}) {
    EXPECT_EQ(run({command, "--help"}), kOk) << command;
    EXPECT_THAT(out_.str(), HasSubstr("--help")) << command;
  }
}

}  // namespace
}  // namespace hapax
