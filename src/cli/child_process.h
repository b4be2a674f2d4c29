// A handler that is a program: input on standard input, result on standard output.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/time.h"

namespace hapax {

struct ChildCall {
  std::string command;  // for /bin/sh -c
  std::string input;
  std::map<std::string, std::string> environment;  // its whole environment
  std::function<bool()> cancelled;                 // called every few milliseconds
  Duration grace{5000};                            // from SIGTERM to SIGKILL
};

struct ChildOutcome {
  int exit_code = 0;       // if it exited by itself
  int signal = 0;          // if a signal ended it
  bool cancelled = false;  // it was asked to end
  bool too_long = false;   // it wrote more than kMaxOutput and was killed
  std::string output;
  std::string errors;  // the last kKeptErrors bytes
};

constexpr std::size_t kMaxOutput = 8 << 20;
constexpr std::size_t kKeptErrors = 4096;

// Runs it in its own process group and waits. When cancelled, the group gets SIGTERM, and after the grace everything it
// has started gets SIGKILL. A background process that it left behind is not waited for. All of them end with this
// process, however it ends (supervisor.h). SIGPIPE must be ignored. Throws std::system_error if no process can be
// started. May be called from several threads.
ChildOutcome run_child(const ChildCall& call);

}  // namespace hapax
