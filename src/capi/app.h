// An open store or server, as a C program has it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/calls.h"
#include "capi/open_sqlite.h"
#include "capi/test_time.h"
#include "capi/worker.h"
#include "open/open_engine.h"

namespace hapax::capi {

struct AppOptions {
  OpenEngineOptions open = {};
  std::size_t max_calls = 65'536;               // of each queue
  Time starts_at = from_ms(1'767'225'600'000);  // for a test: 2026-01-01T00:00:00Z
};

// From the options of hapax_open or hapax_test_open; null or empty: the defaults. Throws InvalidField or InvalidJson.
AppOptions read_app_options(const char* json, bool for_test = false);

// Safe to use from any thread.
class App {
 public:
  // Throws BadUrl or Failure.
  App(const std::string& url, AppOptions options);
  // In memory, on the clock of a test.
  explicit App(AppOptions options);
  ~App() { close(); }

  Calls& calls() { return *calls_; }

  // Null unless it is for a test.
  TestTime* test_time() { return test_time_.get(); }

  std::shared_ptr<CompletionQueue> new_queue();

  // To be started by the caller. Throws Failure if the app is closed.
  std::shared_ptr<Worker> new_worker(WorkerOptions options, std::shared_ptr<CompletionQueue> queue);

  // Ends the workers, answers every call, then stops the engine. Idempotent.
  void close();

 private:
  const std::size_t max_calls_;
  const std::string name_space_;
  const OpenSqlite sqlite_;  // before what it stands for
  std::unique_ptr<TestTime> test_time_;
  Opened opened_;
  std::unique_ptr<Calls> calls_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<CompletionQueue>> queues_;
  std::vector<std::shared_ptr<Worker>> workers_;
  bool is_closed_ = false;
};

}  // namespace hapax::capi
