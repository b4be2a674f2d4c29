#include "cli/live_screen.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string_view>

#include "cli/terminal_text.h"

namespace hapax {

namespace {

volatile sig_atomic_t ended = 0;

void note_end(int) { ended = 1; }
void note_size(int) {}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

LiveScreen::LiveScreen() {
  ended = 0;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) on_signal(signal, note_end);
  on_signal(SIGWINCH, note_size);
  had_termios_ = tcgetattr(STDIN_FILENO, &before_) == 0;
  if (had_termios_) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
  }
  write_all("\x1b[?1049h\x1b[?25l");
}

LiveScreen::~LiveScreen() {
  write_all("\x1b[?25h\x1b[?1049l");
  if (had_termios_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) on_signal(signal, SIG_DFL);
}

void LiveScreen::show(const std::string& frame) {
  std::ostringstream safe;
  {
    TerminalFilter filter(safe);
    safe << frame;
  }
  // Overwrites the old frame line by line, to avoid flicker.
  std::string text = "\x1b[H";
  for (const char c : safe.str()) text += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  write_all(text + "\x1b[J");
}

bool LiveScreen::wait(std::chrono::milliseconds time) {
  if (ended) return false;
  pollfd keys{STDIN_FILENO, POLLIN, 0};
  if (poll(&keys, 1, static_cast<int>(time.count())) <= 0) return !ended;
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) <= 0) return false;
  return key != 'q' && key != 'Q';
}

}  // namespace hapax
