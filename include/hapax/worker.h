// A worker that works beside the rest of the program.
//
//   hapax::Worker worker(app, {.threads = 4});  // works until it goes out of scope
//
// App::work() does the same on the calling thread, until it is stopped.
#pragma once

#include "hapax/app.h"
#include "hapax/detail/pointers.h"

namespace hapax {

class Worker {
 public:
  // Begins at once, with what is declared by now. Signals are left to the program. Throws Error for options that cannot
  // be.
  explicit Worker(const App& app, WorkOptions options = {});

  // As stop(), but an error is only logged.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Finishes what runs, reports it and claims nothing more. Throws the Error that ended the worker before, if one did.
  void stop();

  // False once it has ended by itself: App::stop() was called, WorkOptions::until_idle_for is over, or an error that
  // waiting does not mend (a wrong token, a damaged file).
  bool is_working() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hapax
