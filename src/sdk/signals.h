// SIGTERM and SIGINT while a worker runs.
#pragma once

namespace hapax::detail {

// Catches the two signals while it lives, and then restores the previous handlers. If several live at once, each gets
// every signal, and the last one restores.
class SignalWatch {
 public:
  explicit SignalWatch(bool enabled);
  ~SignalWatch();

  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  bool caught() const;

 private:
  const bool enabled_;
};

}  // namespace hapax::detail
