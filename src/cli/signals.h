// SIGTERM, SIGINT and SIGHUP.
#pragma once

#include <csignal>

namespace hapax {

// Waits for SIGTERM, SIGINT and SIGHUP instead of handling them. Create it before any thread is started: threads
// inherit the mask. SIGHUP asks to end like the others, or to reload if `reloads`. Also ignores SIGPIPE and SIGXFSZ: a
// client that is gone and a file that may not grow become errors of the write.
class EndSignals {
 public:
  explicit EndSignals(bool reloads = false);

  // Returns the number of the next signal. After the first one that asks to end, another one ends the process at once:
  // everything acknowledged is already durable.
  int wait();

 private:
  const bool reloads_;
  sigset_t signals_;
};

}  // namespace hapax
