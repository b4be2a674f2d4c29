#include "cli/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace hapax {

namespace {

// From SIGTERM to SIGKILL after the worker has ended: shorter than the rest of any lease.
constexpr std::int64_t kGraceMs = 500;
constexpr int kKillAgainMs = 10;

std::int64_t now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

[[noreturn]] void become_handler(const Supervised& call, pid_t supervisor) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(127);  // it ended before this was set
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const char* const arguments[] = {"sh", "-c", call.command, nullptr};
  if (dup2(call.in, 0) == 0 && dup2(call.out, 1) == 1 && dup2(call.err, 2) == 2) {
    close_range(3, ~0U, 0);
    execve("/bin/sh", const_cast<char* const*>(arguments), call.environment);
  }
  _exit(127);
}

// All except those of the call: no other process may keep the worker's files open.
void close_others(const Supervised& call) {
  std::array kept{call.in, call.out, call.err, call.lifeline, call.control, call.status};
  std::sort(kept.begin(), kept.end());
  unsigned next = 3;
  for (const int fd : kept) {
    const auto here = static_cast<unsigned>(fd);
    if (here > next) close_range(next, here - 1, 0);
    next = std::max(next, here + 1);
  }
  close_range(next, ~0U, 0);
}

void redirect_to_null() {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; null >= 0 && fd < 3; ++fd) dup2(null, fd);
  if (null > 2) close(null);
}

// From /proc/PID/stat: "PID (name) state ppid …", where the name may contain anything.
pid_t parent_of(const char* pid) {
  char path[64] = "/proc/";
  if (std::strlen(pid) > 20) return -1;
  std::strcat(std::strcat(path, pid), "/stat");
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* end_of_name = std::strrchr(text, ')');
  if (!end_of_name || std::strlen(end_of_name) < 5) return -1;
  pid_t parent = 0;
  for (const char* digit = end_of_name + 4; *digit >= '0' && *digit <= '9'; ++digit) {
    parent = 10 * parent + (*digit - '0');
  }
  return parent;
}

// Every child of this process. Their descendants become children when their parents are gone.
void kill_children() {
  struct Entry {  // linux_dirent64
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
    char name[];
  };
  const int directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(Entry) char buffer[4096];
  for (long size; (size = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->size;
      if (entry->name[0] < '1' || entry->name[0] > '9' || parent_of(entry->name) != getpid()) continue;
      pid_t pid = 0;
      for (const char* digit = entry->name; *digit != '\0'; ++digit) pid = 10 * pid + (*digit - '0');
      kill(pid, SIGKILL);  // not reaped yet, so the pid cannot belong to another process
    }
  }
  close(directory);
}

class Supervisor {
 public:
  Supervisor(const Supervised& call, pid_t handler, int children)
      : call_(call), handler_(handler), children_(children) {}

  // Until nothing is left.
  void run() {
    while (reap()) {
      if (kill_at_ >= 0 && now_ms() >= kill_at_) kill_all();
      wait();
    }
  }

 private:
  // False: there are no more children.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, WNOHANG);
      if (ended == 0) return true;
      if (ended < 0) return errno != ECHILD;
      if (ended != handler_) continue;
      handler_ = -1;
      [[maybe_unused]] const ssize_t told = write(call_.status, &status, sizeof status);
      close(call_.status);
    }
  }

  void wait() {
    std::array<pollfd, 3> waited{{{worker_ended_ ? -1 : call_.lifeline, POLLIN, 0},
                                  {control_closed_ ? -1 : call_.control, POLLIN, 0},
                                  {children_, POLLIN, 0}}};
    const std::int64_t left = kill_at_ < 0 ? -1 : std::max<std::int64_t>(kill_at_ - now_ms(), 0);
    if (poll(waited.data(), waited.size(), static_cast<int>(left)) <= 0) return;
    if (waited[0].revents != 0) {
      worker_ended_ = true;
      terminate();
      kill_at_ = now_ms() + kGraceMs;
    }
    if (waited[1].revents != 0) obey();
    signalfd_siginfo ignored;
    while (read(children_, &ignored, sizeof ignored) > 0) {}
  }

  void obey() {
    char command = 0;
    const ssize_t size = read(call_.control, &command, 1);
    if (size == 0) control_closed_ = true;
    if (size == 1 && command == kTerminate) terminate();
    if (size == 1 && command == kKill) kill_at_ = now_ms();
  }

  // Until its leader is reaped, the group is the handler's.
  void terminate() {
    if (handler_ > 0) kill(-handler_, SIGTERM);
  }

  void kill_all() {
    if (handler_ > 0) kill(-handler_, SIGKILL);
    kill_children();
    kill_at_ = now_ms() + kKillAgainMs;
  }

  const Supervised& call_;
  pid_t handler_;
  const int children_;  // readable when one has ended
  bool worker_ended_ = false, control_closed_ = false;
  std::int64_t kill_at_ = -1;  // and again from then on, until nothing is left; -1: never
};

}  // namespace

void supervise(const Supervised& call) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // only SIGKILL ends it
  setsid();                                 // nor reaches it through the worker's process group
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, 0);
  close_others(call);
  const int children = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
  const pid_t self = getpid();
  const pid_t handler = _Fork();
  if (handler == 0) become_handler(call, self);
  if (children < 0 || handler < 0) _exit(127);
  setpgid(handler, handler);  // on both sides, so that the group exists before it is signalled
  redirect_to_null();
  for (const int fd : {call.in, call.out, call.err}) close(fd);
  Supervisor(call, handler, children).run();
  _exit(0);
}

}  // namespace hapax
