// A worker in a separate process: this program again, as a worker.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hapax/app.h"

namespace hapax::bench {

// A handler started: for which payload, and when by the steady clock, which all processes of a machine share.
struct TaskStart {
  std::int64_t i;
  std::int64_t at_ns;
};

std::int64_t steady_now_ns();

// Declares the task of all measures, `noop`: its result is {"ok": i}.
void declare_noop(App& app, std::function<void(TaskStart)> on_start);

class WorkerProcess {
 public:
  WorkerProcess(const std::string& url, int threads);
  ~WorkerProcess();

  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Waits for the next handler to start. Nothing: the worker has ended.
  std::optional<TaskStart> next_start();

  // Asks it to end; it still finishes what it has claimed.
  void stop();

 private:
  pid_t pid_ = -1;
  int starts_ = -1;
};

// The main of the process: works until SIGTERM, and writes every TaskStart to that descriptor.
void run_worker_process(const std::string& url, int threads, int starts);

}  // namespace hapax::bench
