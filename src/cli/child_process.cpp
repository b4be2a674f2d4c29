#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;

namespace hapax {

namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTick = 20ms;  // how late a cancel or an exit that leaves its output open is seen

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("making a pipe");
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  Descriptor read_end, write_end;
};

void make_nonblocking(const Descriptor& descriptor) {
  if (fcntl(descriptor.get(), F_SETFL, O_NONBLOCK) != 0) fail("preparing a pipe");
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!added.contains(std::string(text.substr(0, text.find('='))))) variables.emplace_back(text);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

// Between fork and exec only what is safe after a fork of a process with threads.
[[noreturn]] void become(const char* command, char** environment, int in, int out, int err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  for (int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const char* const arguments[] = {"sh", "-c", command, nullptr};
  if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) {
    close_range(3, ~0U, 0);
    execve("/bin/sh", const_cast<char* const*>(arguments), environment);
  }
  _exit(127);
}

class Child {
 public:
  explicit Child(const ChildCall& call) : call_(call) {
    Pipe in, out, err;
    const auto variables = merged_environment(call.environment);
    std::vector<char*> pointers;
    for (const std::string& variable : variables) pointers.push_back(const_cast<char*>(variable.c_str()));
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ < 0) fail("starting a process");
    if (pid_ == 0) {
      become(call.command.c_str(), pointers.data(), in.read_end.get(), out.write_end.get(), err.write_end.get());
    }
    setpgid(pid_, pid_);  // on both sides: whoever comes first, the group is there before it is signalled
    in_ = std::move(in.write_end);
    out_ = std::move(out.read_end);
    err_ = std::move(err.read_end);
    for (const Descriptor* each : {&in_, &out_, &err_}) make_nonblocking(*each);
    if (call.input.empty()) in_.close();
  }

  ChildOutcome run() {
    auto kill_at = Steady::time_point::max();
    while (!ended_) {
      exchange();
      if (!outcome_.cancelled && (call_.cancelled() || outcome_.too_long)) {
        outcome_.cancelled = !outcome_.too_long;
        kill(-pid_, outcome_.too_long ? SIGKILL : SIGTERM);
        kill_at = Steady::now() + call_.grace;
      }
      if (Steady::now() >= kill_at) {
        kill(-pid_, SIGKILL);
        kill_at = Steady::time_point::max();
      }
      reap();
    }
    drain(out_, outcome_.output);
    drain(err_, outcome_.errors);
    if (outcome_.cancelled) kill(-pid_, SIGKILL);  // what the group left behind
    keep_last(outcome_.errors);
    return std::move(outcome_);
  }

 private:
  // Waits for something to do with the pipes, a tick at most.
  void exchange() {
    std::array<pollfd, 3> waited{{{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
    const bool silent = !out_.open() && !err_.open();
    poll(waited.data(), waited.size(), silent ? 2 : static_cast<int>(kTick.count()));
    if (in_.open() && waited[0].revents != 0) feed();
    if (out_.open() && waited[1].revents != 0) drain(out_, outcome_.output);
    if (err_.open() && waited[2].revents != 0) drain(err_, outcome_.errors);
    if (outcome_.output.size() > kMaxOutput) outcome_.too_long = true;
  }

  void feed() {
    const std::string_view rest = std::string_view(call_.input).substr(fed_);
    const ssize_t written = write(in_.get(), rest.data(), rest.size());
    if (written > 0) fed_ += static_cast<std::size_t>(written);
    // A handler may close its input unread.
    if (fed_ == call_.input.size() || (written < 0 && errno != EAGAIN && errno != EINTR)) in_.close();
  }

  void drain(Descriptor& from, std::string& into) {
    std::array<char, 16384> buffer;
    while (from.open() && outcome_.output.size() <= kMaxOutput) {
      const ssize_t size = read(from.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return from.close();
      into.append(buffer.data(), static_cast<std::size_t>(size));
      if (&into == &outcome_.errors) keep_last(into);
    }
  }

  static void keep_last(std::string& text) {
    if (text.size() > kKeptErrors) text.erase(0, text.size() - kKeptErrors);
  }

  void reap() {
    int status = 0;
    const pid_t found = waitpid(pid_, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) return;
    ended_ = true;
    if (found < 0) fail("waiting for a process");
    if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
    if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  }

  const ChildCall& call_;
  pid_t pid_ = -1;
  Descriptor in_, out_, err_;
  std::size_t fed_ = 0;
  bool ended_ = false;
  ChildOutcome outcome_;
};

}  // namespace

ChildOutcome run_child(const ChildCall& call) { return Child(call).run(); }

}  // namespace hapax
