// SIGTERM and SIGINT while a worker runs.
#pragma once

namespace hapax::detail {

// Catches the two signals as long as it lives, and puts back what was there before. Of several that live at once each
// hears of a signal, and the last one to end puts back.
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
