#include "load.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include "figures.h"
#include "hapax/app.h"
#include "payload.h"
#include "settle.h"
#include "stored_work.h"
#include "worker_process.h"

namespace hapax::bench {

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kWarmUp = 1000, kLatencyWarmUp = 20;
constexpr int kBulkInFlight = 2;
constexpr auto kPatience = 60s;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void expect(std::string_view what, std::int64_t got, std::int64_t wanted) {
  if (got != wanted) throw std::runtime_error(fmt::format("{}: {}, where it should be {}", what, got, wanted));
}

// Calls `run` with every number of [from, to), on that many threads; rethrows the first exception.
void run_in_flight(std::int64_t from, std::int64_t to, int in_flight, const std::function<void(std::int64_t)>& run) {
  std::atomic<std::int64_t> next = from;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::jthread> threads;
  for (int i = 0; i < in_flight; ++i) {
    threads.emplace_back([&] {
      try {
        for (std::int64_t number = next++; number < to; number = next++) run(number);
      } catch (...) {
        next = to;
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

double own_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

LoadFigure rate(const LoadOptions& options, std::int64_t count, const std::function<void()>& run) {
  const auto server_cpu = [&] { return options.server_cpu_seconds ? options.server_cpu_seconds() : 0.0; };
  const double own_before = own_cpu_seconds(), server_before = server_cpu();
  const auto start = std::chrono::steady_clock::now();
  run();
  const double seconds = seconds_since(start), operations = static_cast<double>(count);
  LoadFigure figure{"tasks/s", count, seconds, operations / seconds};
  figure.client_cpu_us = 1e6 * (own_cpu_seconds() - own_before) / operations;
  figure.server_cpu_us = 1e6 * (server_cpu() - server_before) / operations;
  return figure;
}

// Keeps that many calls in flight: the answer to one starts the next, as the peers' promises do.
class InFlight {
 public:
  // A call reports that it was answered.
  class Next {
   public:
    explicit Next(InFlight& all) : all_(&all) {}

    // Checks the answer and starts the next call; stops at the first check that throws.
    void operator()(const std::function<void()>& check) const { unless_it_fails(check, true); }
    void unless_it_fails(const std::function<void()>& go_on, bool ends = false) const {
      try {
        go_on();
      } catch (...) {
        all_->fail(std::current_exception());
        ends = true;
      }
      if (ends) all_->begin_next();
    }

   private:
    InFlight* all_;
  };

  using Call = std::function<void(std::int64_t, const Next&)>;

  InFlight(std::int64_t from, std::int64_t to, Call call) : to_(to), call_(std::move(call)), next_(from) {}

  void run(int in_flight) {
    under_way_ = in_flight;
    for (int i = 0; i < in_flight; ++i) begin_next();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return under_way_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void begin_next() {
    const std::int64_t i = next_++;
    if (i < to_) return call_(i, Next(*this));
    std::lock_guard lock(mutex_);
    if (--under_way_ == 0) ended_.notify_one();
  }

  void fail(std::exception_ptr failure) {
    next_ = to_;
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }

  const std::int64_t to_;
  const Call call_;
  std::atomic<std::int64_t> next_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int under_way_ = 0;
  std::exception_ptr failure_;
};

// Numbers below zero belong to the warm-up: they are different tasks from the measured ones.
void submit_keyed(App& app, std::int64_t from, std::int64_t to, int in_flight, bool created) {
  InFlight(from, to, [&](std::int64_t i, const InFlight::Next& next) {
    app.submit_async("noop", payload_of(i), key(key_of(i)), [i, created, next](const AnyHandle& handle) {
      next([&] {
        if (handle.created() != created) throw std::runtime_error(fmt::format("task {}: created is {}", i, !created));
      });
    });
  }).run(in_flight);
}

LoadFigure submit_key(const LoadOptions& options) {
  LoadFigure figure;
  {
    App app = open(options.url);
    submit_keyed(app, -kWarmUp, 0, options.in_flight, true);
    settle(options.store);
    figure = rate(options, options.count, [&] { submit_keyed(app, 0, options.count, options.in_flight, true); });
  }
  expect("tasks in the store", StoredWork(options.url).total(), options.count + kWarmUp);
  return figure;
}

LoadFigure submit_duplicate(const LoadOptions& options) {
  LoadFigure figure;
  {
    App app = open(options.url);
    submit_keyed(app, 0, options.count, options.in_flight, true);
    settle(options.store);
    submit_keyed(app, 0, std::min(kWarmUp, options.count), options.in_flight, false);
    figure = rate(options, options.count, [&] { submit_keyed(app, 0, options.count, options.in_flight, false); });
  }
  expect("tasks in the store", StoredWork(options.url).total(), options.count);
  return figure;
}

void submit_bulk(App& app, const LoadOptions& options, std::int64_t from, std::int64_t to) {
  run_in_flight(0, (to - from) / options.batch, kBulkInFlight, [&](std::int64_t call) {
    std::vector<BatchItem> items;
    items.reserve(static_cast<std::size_t>(options.batch));
    for (std::int64_t i = 0; i < options.batch; ++i) {
      items.push_back(BatchItem::of("noop", payload_of(from + call * options.batch + i)));
    }
    for (const AnyHandle& handle : app.submit_batch(items)) {
      if (!handle.created()) throw std::runtime_error("a task of a batch was not created");
    }
  });
}

LoadFigure bulk(const LoadOptions& options) {
  LoadFigure figure;
  const std::int64_t warm_up = 5 * options.batch;
  {
    App app = open(options.url);
    submit_bulk(app, options, -warm_up, 0);
    settle(options.store);
    figure = rate(options, options.count, [&] { submit_bulk(app, options, 0, options.count); });
  }
  expect("tasks in the store", StoredWork(options.url).total(), options.count + warm_up);
  return figure;
}

// A worker in this process, until it goes out of scope.
class LocalWorker {
 public:
  LocalWorker(App& app, int threads)
      : app_(app), thread_([&app, threads] {
          app.work({.threads = static_cast<std::size_t>(threads), .handle_signals = false});
        }) {}
  ~LocalWorker() { app_.stop(); }

 private:
  App& app_;
  std::jthread thread_;
};

TaskStart started_in(WorkerProcess& worker) {
  const std::optional<TaskStart> start = worker.next_start();
  if (!start) throw std::runtime_error("the worker process has ended");
  return *start;
}

// Polls slowly, as with the peers' stores: the worker still has completions to commit.
void await_nothing_open(StoredWork& stored) {
  for (;;) {
    const auto start = std::chrono::steady_clock::now();
    if (stored.open() == 0) return;
    const auto took = std::chrono::steady_clock::now() - start;
    std::this_thread::sleep_for(std::max<std::chrono::steady_clock::duration>(5ms, 4 * took));
  }
}

// As with the peers: the submitter starts a worker in the same process, and the worker opens its own connection.
LoadFigure drain(const LoadOptions& options) {
  {
    App app = open(options.url);
    submit_bulk(app, options, 0, options.count);
  }
  settle(options.store);
  StoredWork stored(options.url);
  expect("waiting tasks", stored.open(), options.count);
  std::atomic<std::int64_t> handled = 0;
  std::promise<void> all_handled;
  std::optional<App> app;
  std::optional<LocalWorker> worker;
  const LoadFigure figure = rate(options, options.count, [&] {
    app.emplace(open(options.url));
    declare_noop(*app, [&](TaskStart) {
      if (++handled == options.count) all_handled.set_value();
    });
    worker.emplace(*app, options.threads);
    if (all_handled.get_future().wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("the tasks were not all handled");
    }
    await_nothing_open(stored);
  });
  worker.reset();
  expect("runs of the handler", handled, options.count);
  expect("tasks in the store", stored.total(), options.count);
  expect("results in the store", stored.completed_with_result(), options.count);
  return figure;
}

// The starts of handlers, reported by a worker in this process.
class LocalStarts {
 public:
  void put(TaskStart start) {
    std::lock_guard lock(mutex_);
    starts_[start.i] = start.at_ns;
    changed_.notify_all();
  }

  TaskStart take(std::int64_t i) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return starts_.contains(i); })) {
      throw std::runtime_error("a task was not started");
    }
    return {i, starts_[i]};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, std::int64_t> starts_;
};

// Submits one task after the other, each to an idle worker; milliseconds from the call to the start of the handler.
std::vector<double> start_delays(App& app, std::int64_t count, const std::function<TaskStart()>& next_start) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> pause_ms(20, 100);
  std::vector<double> milliseconds;
  for (std::int64_t i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(random)));
    const std::int64_t submitted_ns = steady_now_ns();
    const AnyHandle handle = app.submit("noop", payload_of(i));
    const TaskStart start = next_start();
    expect("the task that was started", start.i, i);
    milliseconds.push_back(static_cast<double>(start.at_ns - submitted_ns) / 1e6);
    if (!handle.wait_for(kPatience)) throw std::runtime_error("a task was not completed");
  }
  return milliseconds;
}

LoadFigure latency(const LoadOptions& options) {
  const std::int64_t count = options.count + kLatencyWarmUp;
  std::vector<double> milliseconds;
  {
    App app = open(options.url);
    settle(options.store);
    if (options.two_processes) {
      WorkerProcess worker(options.url, 4);
      milliseconds = start_delays(app, count, [&] { return started_in(worker); });
    } else {
      LocalStarts starts;
      std::int64_t next = 0;
      declare_noop(app, [&](TaskStart start) { starts.put(start); });
      const LocalWorker worker(app, 4);
      milliseconds = start_delays(app, count, [&] { return starts.take(next++); });
    }
  }
  expect("results in the store", StoredWork(options.url).completed_with_result(), count);
  milliseconds.erase(milliseconds.begin(), milliseconds.begin() + kLatencyWarmUp);
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto quantile = [&](double q) {
    const auto place = static_cast<std::size_t>(q * static_cast<double>(milliseconds.size()));
    return milliseconds[std::min(place, milliseconds.size() - 1)];
  };
  return {"ms", options.count, 0, quantile(0.5), quantile(0.5), quantile(0.99), 0};
}

std::int64_t next_number(std::int64_t number) { return number + 1; }

std::int64_t three_steps(Context& context, std::int64_t number) {
  for (int step = 0; step < 3; ++step) number = context.run(next_number, number);
  return number;
}

// As the peer runs them: starter and worker in one process, from the start of a workflow to its result.
LoadFigure workflow(const LoadOptions& options) {
  constexpr std::int64_t kWarmUpRuns = 200;
  App app = open(options.url);
  app.task("next_number", next_number);
  app.workflow("three_steps", three_steps);
  std::optional<LocalWorker> worker(std::in_place, app, options.threads);
  const auto run = [&](std::int64_t from, std::int64_t to) {
    InFlight(from, to, [&](std::int64_t i, const InFlight::Next& next) {
      app.start_async("three_steps", key_of(i), i, {}, [i, next](const AnyWorkflowHandle& started) {
        next.unless_it_fails([&] {
          started.when_closed([i, next](const AnyWorkflowHandle& closed) {
            next([&] { expect("the result of a workflow", closed.result<std::int64_t>(), i + 3); });
          });
        });
      });
    }).run(options.in_flight);
  };
  run(-kWarmUpRuns, 0);
  settle(options.store);
  LoadFigure figure = rate(options, options.count, [&] { run(0, options.count); });
  figure.unit = "workflows/s";
  worker.reset();
  expect("steps in the store", StoredWork(options.url).total(), 3 * (options.count + kWarmUpRuns));
  return figure;
}

std::int64_t many_steps(Context& context, std::int64_t steps) {
  std::int64_t number = 0;
  for (std::int64_t step = 0; step < steps; ++step) number = context.run(next_number, number);
  return number;
}

// As the peer runs them: one workflow at a time, alternating between one of `count` steps and ten of a tenth of them.
LoadFigure long_workflow(const LoadOptions& options) {
  constexpr int kRounds = 5, kShort = 10;
  App app = open(options.url);
  app.task("next_number", next_number);
  app.workflow("many_steps", many_steps);
  std::optional<LocalWorker> worker(std::in_place, app, options.threads);
  std::int64_t started = 0;
  const auto steps_per_second = [&](std::int64_t workflows, std::int64_t steps) {
    return rate(options, workflows * steps,
                [&] {
                  for (std::int64_t i = 0; i < workflows; ++i) {
                    const auto handle = app.start("many_steps", key_of(started++), steps);
                    expect("the result of a workflow", handle.result<std::int64_t>(), steps);
                  }
                })
        .value;
  };
  steps_per_second(kShort, options.count / kShort);
  settle(options.store);
  std::vector<double> of_long, of_short;
  for (int round = 0; round < kRounds; ++round) {
    of_short.push_back(steps_per_second(kShort, options.count / kShort));
    of_long.push_back(steps_per_second(1, options.count));
  }
  worker.reset();
  expect("steps in the store", StoredWork(options.url).total(), (2 * kRounds + 1) * options.count);
  LoadFigure figure{"steps/s", options.count, 0, median(of_long)};
  figure.of_short = median(of_short);
  return figure;
}

const std::map<std::string_view, LoadFigure (*)(const LoadOptions&)> kMeasures = {
    {"submit_key", submit_key},
    {"submit_duplicate", submit_duplicate},
    {"bulk", bulk},
    {"drain", drain},
    {"latency", latency},
    {"workflow", workflow},
    {"long_workflow", long_workflow}};

}  // namespace

bool knows_measure(std::string_view measure) { return kMeasures.contains(measure); }

LoadFigure run_measure(const LoadOptions& options) { return kMeasures.at(options.measure)(options); }

}  // namespace hapax::bench
