// A terminal in a live view, restored however it ends.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace hapax {

class LiveScreen {
 public:
  // The alternate screen, without a cursor and without echo. SIGINT, SIGTERM and SIGHUP end the view instead of the
  // process.
  LiveScreen();
  ~LiveScreen();

  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  void show(const std::string& frame);

  // Waits that long for a key or a new size. False: `q` was pressed or a signal arrived, and the view has ended.
  bool wait(std::chrono::milliseconds time);

 private:
  termios before_{};
  bool had_termios_ = false;
};

}  // namespace hapax
