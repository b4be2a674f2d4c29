// Shell completion, generated from the commands themselves.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hapax {

struct CompletionFlag {
  std::string name;  // "--reuse"
  std::string description;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;  // if the value is one of a few words
};

struct CompletionCommand {
  std::string path;  // "hapax queues set"
  std::string description;
  std::vector<CompletionFlag> flags;     // its own and those it inherits
  std::vector<std::string> choices;      // words that may replace an argument
  std::vector<std::string> subcommands;  // their last words
};

// Every command of the tree, parents before children.
std::vector<CompletionCommand> completion_commands(const CLI::App& app);

std::string bash_completion(const std::vector<CompletionCommand>& commands);
std::string zsh_completion(const std::vector<CompletionCommand>& commands);
std::string fish_completion(const std::vector<CompletionCommand>& commands);

}  // namespace hapax
