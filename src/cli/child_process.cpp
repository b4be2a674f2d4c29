#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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

#include "cli/supervisor.h"

namespace hapax {

namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kTick = 20ms;  // how late a cancel is noticed

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

// A pipe whose write end closes when this process ends, so that the holder of the read end notices.
int lifeline() {
  static const Pipe pipe;
  return pipe.read_end.get();
}

// Forks twice: the supervisor may outlive the attempt, so init reaps it.
void start_supervisor(const Supervised& call) {
  const pid_t between = fork();
  if (between < 0) fail("starting a process");
  if (between == 0) {
    const pid_t supervisor = _Fork();
    if (supervisor == 0) supervise(call);
    _exit(supervisor < 0 ? 1 : 0);
  }
  int status = 0;
  while (waitpid(between, &status, 0) < 0) {
    if (errno != EINTR) fail("waiting for a process");
  }
  errno = EAGAIN;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("starting a process");
}

class Child {
 public:
  explicit Child(const ChildCall& call) : call_(call) {
    Pipe in, out, err, control, status;
    std::vector<std::string> variables;
    for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
    std::vector<char*> pointers;
    for (std::string& variable : variables) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    start_supervisor({.command = call.command.c_str(),
                      .environment = pointers.data(),
                      .in = in.read_end.get(),
                      .out = out.write_end.get(),
                      .err = err.write_end.get(),
                      .lifeline = lifeline(),
                      .control = control.read_end.get(),
                      .status = status.write_end.get()});
    in_ = std::move(in.write_end);
    out_ = std::move(out.read_end);
    err_ = std::move(err.read_end);
    control_ = std::move(control.write_end);
    status_ = std::move(status.read_end);
    for (const Descriptor* each : {&in_, &out_, &err_}) make_nonblocking(*each);
    if (call.input.empty()) in_.close();
  }

  ChildOutcome run() {
    auto kill_at = Steady::time_point::max();
    while (!ended_) {
      exchange();
      if (!outcome_.cancelled && (call_.cancelled() || outcome_.too_long)) {
        outcome_.cancelled = !outcome_.too_long;
        order(outcome_.too_long ? kKill : kTerminate);
        kill_at = Steady::now() + call_.grace;
      }
      if (Steady::now() >= kill_at) {
        order(kKill);
        kill_at = Steady::time_point::max();
      }
    }
    drain(out_, outcome_.output);
    drain(err_, outcome_.errors);
    if (outcome_.cancelled) order(kKill);  // what it left behind
    keep_last(outcome_.errors);
    return std::move(outcome_);
  }

 private:
  // Waits for activity on the pipes, a tick at most.
  void exchange() {
    std::array<pollfd, 4> waited{
        {{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {status_.get(), POLLIN, 0}}};
    if (poll(waited.data(), waited.size(), static_cast<int>(kTick.count())) <= 0) return;
    if (in_.open() && waited[0].revents != 0) feed();
    if (out_.open() && waited[1].revents != 0) drain(out_, outcome_.output);
    if (err_.open() && waited[2].revents != 0) drain(err_, outcome_.errors);
    if (outcome_.output.size() > kMaxOutput) outcome_.too_long = true;
    if (waited[3].revents != 0) hear_end();
  }

  void order(char command) { [[maybe_unused]] const ssize_t written = write(control_.get(), &command, 1); }

  void feed() {
    const std::string_view rest = std::string_view(call_.input).substr(fed_);
    const ssize_t written = write(in_.get(), rest.data(), rest.size());
    if (written > 0) fed_ += static_cast<std::size_t>(written);
    // A handler may close its input without reading it.
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

  // Without a status, the supervisor was killed, and the handler with it.
  void hear_end() {
    int status = SIGKILL;
    if (read(status_.get(), &status, sizeof status) < 0 && errno == EINTR) return;
    ended_ = true;
    if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
    if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  }

  const ChildCall& call_;
  Descriptor in_, out_, err_, control_, status_;
  std::size_t fed_ = 0;
  bool ended_ = false;
  ChildOutcome outcome_;
};

}  // namespace

ChildOutcome run_child(const ChildCall& call) { return Child(call).run(); }

}  // namespace hapax
