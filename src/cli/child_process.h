// A handler that is a program: it gets its input on standard input and answers on standard output.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/time.h"

namespace hapax {

struct ChildCall {
  std::string command;  // for /bin/sh -c
  std::string input;
  std::map<std::string, std::string> environment;  // all that it has
  std::function<bool()> cancelled;                 // asked every few milliseconds
  Duration grace{5000};                            // from SIGTERM to SIGKILL
};

struct ChildOutcome {
  int exit_code = 0;       // where it ended by itself
  int signal = 0;          // where a signal ended it
  bool cancelled = false;  // it was asked to end
  bool too_long = false;   // it wrote more than kMaxOutput, and was killed for it
  std::string output;
  std::string errors;  // the last kKeptErrors bytes
};

constexpr std::size_t kMaxOutput = 8 << 20;
constexpr std::size_t kKeptErrors = 4096;

// Runs it in a process group of its own and waits. Cancelled, the group gets SIGTERM, and after the grace all that it
// has started gets SIGKILL. A process that it left behind in the background is not waited for. All of them end with
// this process, however it ends (supervisor.h). SIGPIPE must be ignored. Throws std::system_error if there is no
// process to be had. May be called from several threads.
ChildOutcome run_child(const ChildCall& call);

}  // namespace hapax
