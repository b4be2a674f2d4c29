#include "cli/completion_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using testing::HasSubstr;

std::vector<CompletionCommand> commands() {
  CompletionFlag json{"--json", "Print JSON", false, false, {}};
  CompletionFlag reuse{"--reuse", "When it's reused", true, false, {"allow_failed", "reject"}};
  CompletionFlag config{"--config", "The file", true, true, {}};
  return {{"hapax", "Hapax", {}, {}, {"submit", "queues"}},
          {"hapax submit", "Submit a task", {config, json, reuse}, {}, {}},
          {"hapax queues", "Queues", {json}, {}, {"show"}},
          {"hapax queues show", "Show one", {json}, {}, {}}};
}

TEST(Completion, BashKnowsCommandsFlagsAndChoices) {
  const std::string script = bash_completion(commands());
  EXPECT_THAT(script, HasSubstr(R"("hapax submit"|"hapax queues"|"hapax queues show") at=)"));
  EXPECT_THAT(script, HasSubstr(R"("hapax") words="submit queues" ;;)"));
  EXPECT_THAT(script, HasSubstr(R"("hapax submit") words="--config --json --reuse" ;;)"));
  EXPECT_THAT(
      script,
      HasSubstr(R"("hapax submit:--reuse") COMPREPLY=($(compgen -W "allow_failed reject" -- "$cur")); return ;;)"));
  EXPECT_THAT(script, HasSubstr(R"("hapax submit:--config") COMPREPLY=($(compgen -f -- "$cur")); return ;;)"));
}

TEST(Completion, ZshDescribesThemInQuotes) {
  const std::string script = zsh_completion(commands());
  EXPECT_THAT(script, HasSubstr("'submit:Submit a task'"));
  EXPECT_THAT(script, HasSubstr(R"('--reuse:When it'\''s reused')"));
  EXPECT_THAT(script, HasSubstr(R"(("hapax submit:--reuse") compadd -- allow_failed reject; return ;;)"));
}

TEST(Completion, FishOffersASubcommandOnlyAfterItsParent) {
  const std::string script = fish_completion(commands());
  EXPECT_THAT(script, HasSubstr("complete -c hapax -n '__fish_use_subcommand' -a submit -d 'Submit a task'\n"));
  EXPECT_THAT(script, HasSubstr("complete -c hapax -n '__fish_seen_subcommand_from queues; and not "
                                "__fish_seen_subcommand_from show' -a show -d 'Show one'\n"));
  EXPECT_THAT(script, HasSubstr(R"(-l reuse -x -a 'allow_failed reject' -d 'When it\'s reused')"));
}

}  // namespace
}  // namespace hapax
