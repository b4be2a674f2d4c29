// The flags of a submission, shared by submit, start and explain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/engine.h"

namespace hapax {

// Must live as long as the command it was added to.
class SubmissionFlags {
 public:
  // A workflow has its id instead of a key and of the other parts of an identity.
  void add(CLI::App& command, Kind kind = Kind::task);

  // The submission from the flags. Reads the input from program.in if it is "-"; an empty input is null. Throws
  // CommandError that names the flag at fault.
  SubmitRequest request(const Program& program) const;

  const std::string& type() const { return type_; }
  bool has_input() const { return !input_.empty(); }
  void set_input(std::string text) { input_ = std::move(text); }

 private:
  void add_identity(CLI::App& command);
  void add_timing(CLI::App& command);
  std::string document(const Program& program) const;

  Kind kind_ = Kind::task;
  std::string type_, input_;
  std::optional<std::string> key_, scope_, queue_, identity_, reuse_, on_duplicate_, ttl_, delay_, run_at_, timeout_,
      deadline_, concurrency_key_, retry_initial_, retry_max_, id_;
  std::vector<std::string> identity_fields_, headers_, tags_;
  std::optional<std::int64_t> priority_, max_attempts_;
  std::optional<double> retry_factor_;
};

// A document on the command line, or on standard input if it is "-"; an empty one is null. Throws CommandError that
// names the argument.
Json read_json_argument(const std::string& argument, const std::string& text, const Program& program);

// A text that must be UTF-8. Throws CommandError.
void require_utf8(const std::string& flag, const std::string& text);

// The names of types, queues and scopes. Throws CommandError.
void require_name(const std::string& flag, const std::string& name);

}  // namespace hapax
