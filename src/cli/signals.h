// Being asked to end, or to reload.
#pragma once

#include <csignal>

namespace hapax {

// SIGTERM, SIGINT and SIGHUP, waited for instead of handled. Make it before any thread is started: they inherit the
// mask. SIGHUP asks to end as the others do, or to reload if `reloads`. SIGPIPE and SIGXFSZ are ignored from then on: a
// client that is gone and a file that may not grow are errors of the write.
class EndSignals {
 public:
  explicit EndSignals(bool reloads = false);

  // Returns when one comes, with its number. From the first one on that asks to end, another one ends the process at
  // once: everything acknowledged is durable already.
  int wait();

 private:
  const bool reloads_;
  sigset_t signals_;
};

}  // namespace hapax
