#include "sdk/overflow.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace hapax::detail {

namespace {

constexpr std::size_t kWatchStackBytes = 64 * 1024;

struct Running {
  const char* lowest = nullptr;
  std::size_t bytes = 0;
  const std::string* workflow = nullptr;
};
thread_local Running running;

struct sigaction before;

// Only calls that are safe in a signal handler.
void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

void say_number(std::size_t number) {
  char digits[24];
  char* at = digits + sizeof digits;
  *--at = '\0';
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  say(at);
}

void handle(int, siginfo_t* info, void*) {
  const auto fault = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto lowest = reinterpret_cast<std::uintptr_t>(running.lowest);
  const auto page = static_cast<std::uintptr_t>(getpagesize());
  if (running.lowest && fault >= lowest && fault < lowest + page) {
    say("hapax: the code of workflow '");
    say(running.workflow ? running.workflow->c_str() : "");
    say("' has overflown its stack of ");
    say_number(running.bytes - page);
    say(" bytes: give it more with WorkflowOptions::stack_bytes, or keep large objects on the heap\n");
  }
  sigaction(SIGSEGV, &before, nullptr);  // the fault comes again, and ends the program as it would have
}

[[maybe_unused]] void install() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// They tell of it by themselves.
OverflowWatch::OverflowWatch() = default;
OverflowWatch::~OverflowWatch() = default;
#else
OverflowWatch::OverflowWatch() : stack_(std::make_unique<char[]>(kWatchStackBytes)) {
  [[maybe_unused]] static const bool once = (install(), true);
  stack_t stack{};
  stack.ss_sp = stack_.get();
  stack.ss_size = kWatchStackBytes;
  sigaltstack(&stack, nullptr);
}

OverflowWatch::~OverflowWatch() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}
#endif

void running_on_stack(const void* lowest, std::size_t bytes) {
  running.lowest = static_cast<const char*>(lowest);
  running.bytes = bytes;
}

void running_workflow(const std::string* type) { running.workflow = type; }

}  // namespace hapax::detail
