#include "sdk/signals.h"

#include <csignal>

namespace hapax::detail {

namespace {

volatile std::sig_atomic_t signalled = 0;
struct sigaction before_term, before_int;

void note(int) { signalled = 1; }

}  // namespace

SignalWatch::SignalWatch(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = note;
  sigaction(SIGTERM, &action, &before_term);
  sigaction(SIGINT, &action, &before_int);
}

SignalWatch::~SignalWatch() {
  if (!enabled_) return;
  sigaction(SIGTERM, &before_term, nullptr);
  sigaction(SIGINT, &before_int, nullptr);
}

bool SignalWatch::caught() const { return enabled_ && signalled; }

}  // namespace hapax::detail
