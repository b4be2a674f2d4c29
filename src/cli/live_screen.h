// A terminal taken over for a live view, and given back as it was, whatever ends it.
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

  // Waits so long for a key or a new size. False: `q` was pressed or a signal came, and the view is over.
  bool wait(std::chrono::milliseconds time);

 private:
  termios before_{};
  bool had_termios_ = false;
};

}  // namespace hapax
