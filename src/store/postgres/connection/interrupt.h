// Interrupts every wait for a socket, on any thread, by a pipe that all of them also watch.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "core/failure.h"

namespace hapax::postgres {

class Interrupt {
 public:
  Interrupt() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw Failure(Failure::Code::unavailable, "no pipe can be made: too many open files");
  }
  ~Interrupt() {
    trigger();
    close(ends_[0]);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Once and for all.
  void trigger() {
    if (!triggered_.exchange(true)) close(ends_[1]);
  }
  bool is_triggered() const { return triggered_; }

  // Readable from then on.
  int fd() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
  std::atomic<bool> triggered_ = false;
};

}  // namespace hapax::postgres
