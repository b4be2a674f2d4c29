#include "cli/completion_script.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

namespace hapax {

namespace {

// "allow_failed|reject" lists its values; "URL" lists none.
std::vector<std::string> choices_of(std::string type_name) {
  if (type_name.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  for (std::size_t start = 0; start <= type_name.size();) {
    const auto bar = std::min(type_name.find('|', start), type_name.size());
    words.push_back(type_name.substr(start, bar - start));
    start = bar + 1;
  }
  return words;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void add_options(const CLI::App& app, CompletionCommand& command) {
  for (const auto* option : app.get_options()) {
    if (option->get_positional()) {
      for (std::string& word : choices_of(option->get_type_name())) command.choices.push_back(std::move(word));
      continue;
    }
    for (const std::string& name : option->get_lnames()) {
      command.flags.push_back({"--" + name, first_line(option->get_description()), option->get_items_expected_max() > 0,
                               option->get_type_name() == "FILE", choices_of(option->get_type_name())});
    }
  }
}

void visit(const CLI::App& app, const std::string& parent, std::vector<CompletionCommand>& out) {
  CompletionCommand command;
  command.path = parent.empty() ? app.get_name() : parent + " " + app.get_name();
  command.description = first_line(app.get_description());
  add_options(app, command);
  if (app.get_fallthrough() && app.get_parent() != nullptr) add_options(*app.get_parent(), command);
  std::sort(command.flags.begin(), command.flags.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  command.flags.erase(std::unique(command.flags.begin(), command.flags.end(), same), command.flags.end());
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const auto* sub : subcommands) command.subcommands.push_back(sub->get_name());
  const std::string path = command.path;
  out.push_back(std::move(command));
  for (const auto* sub : subcommands) visit(*sub, path, out);
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// "hapax serve"|"hapax submit"|…: the commands that have subcommands at this depth.
std::string path_pattern(const std::vector<CompletionCommand>& commands) {
  std::vector<std::string> paths;
  for (const auto& command : commands) {
    if (command.path.find(' ') != std::string::npos) paths.push_back("\"" + command.path + "\"");
  }
  return fmt::format("{}", fmt::join(paths, "|"));
}

std::string description_of(const std::vector<CompletionCommand>& commands, const std::string& path) {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.path == path; });
  return found == commands.end() ? "" : found->description;
}

}  // namespace

std::vector<CompletionCommand> completion_commands(const CLI::App& app) {
  std::vector<CompletionCommand> commands;
  visit(app, "", commands);
  return commands;
}

std::string bash_completion(const std::vector<CompletionCommand>& commands) {
  std::string values, words;
  for (const auto& command : commands) {
    std::vector<std::string> offered = command.subcommands;
    offered.insert(offered.end(), command.choices.begin(), command.choices.end());
    for (const auto& flag : command.flags) {
      offered.push_back(flag.name);
      if (!flag.takes_value) continue;
      const std::string reply = flag.takes_file        ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                                : flag.choices.empty() ? "COMPREPLY=()"
                                                       : fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))",
                                                                     fmt::join(flag.choices, " "));
      values += fmt::format("    \"{}:{}\") {}; return ;;\n", command.path, flag.name, reply);
    }
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.path, fmt::join(offered, " "));
  }
  return fmt::format(R"sh(# bash completion for hapax: eval "$(hapax completion bash)"
_hapax() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" at=hapax words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${{COMP_WORDS[i]}}" in
      {}) at="$at ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$at:$prev" in
{}  esac
  case "$at" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -F _hapax hapax
)sh",
                     path_pattern(commands), values, words);
}

std::string zsh_completion(const std::vector<CompletionCommand>& commands) {
  std::string values, words;
  for (const auto& command : commands) {
    std::string offered;
    for (const auto& sub : command.subcommands) {
      offered += " " + shell_quoted(sub + ":" + description_of(commands, command.path + " " + sub));
    }
    for (const auto& word : command.choices) offered += " " + shell_quoted(word);
    for (const auto& flag : command.flags) {
      offered += " " + shell_quoted(flag.name + ":" + flag.description);
      if (!flag.takes_value) continue;
      const std::string reply = flag.takes_file        ? "_files"
                                : flag.choices.empty() ? "_message 'a value'"
                                                       : fmt::format("compadd -- {}", fmt::join(flag.choices, " "));
      values += fmt::format("    (\"{}:{}\") {}; return ;;\n", command.path, flag.name, reply);
    }
    words += fmt::format("    (\"{}\") offered=({}) ;;\n", command.path, offered);
  }
  return fmt::format(R"sh(#compdef hapax
# zsh completion for hapax: eval "$(hapax completion zsh)", or a file _hapax in $fpath
_hapax() {{
  local at=hapax i
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${{words[i]}}" in
      ({}) at="$at ${{words[i]}}" ;;
    esac
  done
  case "$at:${{words[CURRENT-1]}}" in
{}  esac
  case "$at" in
{}  esac
  _describe hapax offered
}}
if [ "$funcstack[1]" = _hapax ]; then _hapax "$@"; else compdef _hapax hapax; fi
)sh",
                     path_pattern(commands), values, words);
}

std::string fish_completion(const std::vector<CompletionCommand>& commands) {
  const auto fish_quoted = [](std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out + "'";
  };
  std::string out = "# fish completion for hapax: hapax completion fish | source\ncomplete -c hapax -f\n";
  for (const auto& command : commands) {
    // The words after "hapax" that must have been seen, and the subcommands that must not have been.
    std::string seen;
    for (std::size_t start = command.path.find(' '); start != std::string::npos;) {
      const auto end = command.path.find(' ', start + 1);
      seen += (seen.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
              command.path.substr(start + 1, end == std::string::npos ? end : end - start - 1);
      start = end;
    }
    std::string here = seen.empty() ? "__fish_use_subcommand" : seen;
    if (!seen.empty() && !command.subcommands.empty()) {
      here += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(command.subcommands, " "));
    }
    for (const auto& sub : command.subcommands) {
      out += fmt::format("complete -c hapax -n {} -a {} -d {}\n", fish_quoted(here), sub,
                         fish_quoted(description_of(commands, command.path + " " + sub)));
    }
    if (!command.choices.empty()) {
      out += fmt::format("complete -c hapax -n {} -a {}\n", fish_quoted(here),
                         fish_quoted(fmt::format("{}", fmt::join(command.choices, " "))));
    }
    for (const auto& flag : command.flags) {
      out += fmt::format("complete -c hapax -n {} -l {}{} -d {}\n", fish_quoted(here), flag.name.substr(2),
                         flag.takes_file ? " -r -F"
                         : !flag.choices.empty()
                             ? fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(flag.choices, " "))))
                         : flag.takes_value ? " -x"
                                            : "",
                         fish_quoted(flag.description));
    }
  }
  return out;
}

}  // namespace hapax
