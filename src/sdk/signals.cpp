#include "sdk/signals.h"

#include <csignal>
#include <mutex>

namespace hapax::detail {

namespace {

volatile std::sig_atomic_t signalled = 0;
struct sigaction before_term, before_int;

// Several workers of one process share it: the first catches the signals, the last restores the handlers.
std::mutex watches_mutex;
int watches = 0;

void note(int) { signalled = 1; }

}  // namespace

SignalWatch::SignalWatch(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  const std::lock_guard lock(watches_mutex);
  if (watches++ > 0) return;
  signalled = 0;
  struct sigaction action{};
  action.sa_handler = note;
  sigaction(SIGTERM, &action, &before_term);
  sigaction(SIGINT, &action, &before_int);
}

SignalWatch::~SignalWatch() {
  if (!enabled_) return;
  const std::lock_guard lock(watches_mutex);
  if (--watches > 0) return;
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGINT, &before_int, nullptr);
}

bool SignalWatch::caught() const { return enabled_ && signalled; }

}  // namespace hapax::detail
