#include "cli/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace hapax {

namespace {

extern "C" void end_at_once(int) { _exit(1); }

constexpr int kEndSignals[] = {SIGTERM, SIGINT, SIGHUP};

}  // namespace

EndSignals::EndSignals(bool reloads) : reloads_(reloads) {
  sigemptyset(&signals_);
  for (int signal : kEndSignals) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int EndSignals::wait() {
  int signal = 0;
  int failure = 0;
  do failure = sigwait(&signals_, &signal);
  while (failure == EINTR);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), "waiting for signals");
  if (reloads_ && signal == SIGHUP) return signal;
  for (int each : kEndSignals) std::signal(each, reloads_ && each == SIGHUP ? SIG_IGN : end_at_once);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  return signal;
}

}  // namespace hapax
