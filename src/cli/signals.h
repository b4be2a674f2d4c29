// Being asked to end.
#pragma once

#include <csignal>

namespace hapax {

// SIGTERM, SIGINT and SIGHUP, waited for instead of handled. Make it before any thread is started: they inherit the mask.
// SIGPIPE and SIGXFSZ are ignored from then on: a client that is gone and a file that may not grow are errors of the write.
class EndSignals {
 public:
  EndSignals();

  // Returns when the first one comes, with its number. From then on another one ends the process at once: everything
  // acknowledged is durable already.
  int wait();

 private:
  sigset_t signals_;
};

}  // namespace hapax
