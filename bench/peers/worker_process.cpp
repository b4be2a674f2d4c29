#include "worker_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/describe.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace hapax::bench {

struct Noop {
  std::int64_t i;
};
BOOST_DESCRIBE_STRUCT(Noop, (), (i))

struct Done {
  std::int64_t ok;
};
BOOST_DESCRIBE_STRUCT(Done, (), (ok))

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void declare_noop(App& app, std::function<void(TaskStart)> on_start) {
  app.task("noop", [on_start = std::move(on_start)](const Noop& input) {
    on_start({input.i, steady_now_ns()});
    return Done{input.i};
  });
}

WorkerProcess::WorkerProcess(const std::string& url, int threads) {
  int starts[2];
  if (pipe(starts) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  const std::string write_end = std::to_string(starts[1]), thread_count = std::to_string(threads);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(starts[0]);
    execl("/proc/self/exe", "hapax_peer", "--work", url.c_str(), "--threads", thread_count.c_str(), "--starts",
          write_end.c_str(), nullptr);
    _exit(127);
  }
  close(starts[1]);
  starts_ = starts[0];
}

void WorkerProcess::stop() { kill(pid_, SIGTERM); }

WorkerProcess::~WorkerProcess() {
  stop();
  // Reads the pipe until the worker closes it, so that the worker never blocks on a full one.
  char rest[4096];
  while (read(starts_, rest, sizeof rest) > 0) {}
  close(starts_);
  waitpid(pid_, nullptr, 0);
}

std::optional<TaskStart> WorkerProcess::next_start() {
  TaskStart start;
  auto* place = reinterpret_cast<char*>(&start);
  for (std::size_t have = 0; have < sizeof start;) {
    const ssize_t got = read(starts_, place + have, sizeof start - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return start;
}

void run_worker_process(const std::string& url, int threads, int starts) {
  App app = open(url);
  declare_noop(app, [starts](TaskStart start) {
    // Shorter than PIPE_BUF, so one write is atomic from any thread.
    if (write(starts, &start, sizeof start) != sizeof start) throw std::runtime_error("nobody reads the starts");
  });
  app.work({.threads = static_cast<std::size_t>(threads)});
}

}  // namespace hapax::bench
