#include "library_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "figures.h"
#include "hapax/app.h"

namespace hapax::bench {

double library_drain(const std::string& url, std::int64_t tasks, std::size_t threads) {
  App app = open(url);
  std::atomic<std::int64_t> done = 0;
  app.task("bench", [&] {
    if (++done == tasks) app.stop();
  });
  const double start = seconds_now();
  app.work({.threads = threads, .handle_signals = false});
  if (done != tasks) throw std::runtime_error("the worker ran another number of tasks");
  return static_cast<double>(tasks) / (seconds_now() - start);
}

std::vector<double> library_latency(const std::string& url, int tasks) {
  App app = open(url);
  app.task("echo", [](int n) { return n; });
  std::jthread worker([&] { app.work({.threads = 1, .handle_signals = false}); });
  std::vector<double> milliseconds;
  for (int i = 0; i < tasks; ++i) {
    const double start = seconds_now();
    if (app.submit("echo", i).result<int>() != i) throw std::runtime_error("a wrong result");
    milliseconds.push_back(1000 * (seconds_now() - start));
  }
  app.stop();
  return milliseconds;
}

std::vector<double> fsync_latency(const std::string& folder, int times) {
  const std::string path = folder + "/fsync.probe";
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  const std::string pages(5 * 4096, 'x');
  std::vector<double> milliseconds;
  for (int i = 0; i < times; ++i) {
    const double start = seconds_now();
    if (pwrite(file, pages.data(), pages.size(), static_cast<off_t>(pages.size()) * i) < 0 || fdatasync(file) != 0)
      throw std::runtime_error("fdatasync failed");
    milliseconds.push_back(1000 * (seconds_now() - start));
  }
  close(file);
  unlink(path.c_str());
  return milliseconds;
}

}  // namespace hapax::bench
