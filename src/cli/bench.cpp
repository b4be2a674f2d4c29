#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <ostream>
#include <thread>

#include "cli/command.h"
#include "cli/receipt_words.h"
#include "cli/table.h"
#include "cli/target.h"
#include "core/hex.h"
#include "core/json_writer.h"

namespace hapax {

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::string_view kQueue = "hapax-bench";
constexpr std::int32_t kClaimed = 50;  // at once

struct BenchFlags {
  TargetFlags target;
  std::int64_t tasks = 10'000;
  std::int64_t in_flight = 64;
};

// The requests that one task took, on a store that charges by request.
struct Requests {
  double put = 0, get = 0, list = 0, remove = 0;

  bool any() const { return put + get + list + remove > 0; }
};

struct Figure {
  std::string what;
  std::int64_t count = 0;
  double seconds = 0;
  double p50_ms = 0, p99_ms = 0;
  Requests requests = {};

  double per_second() const { return static_cast<double>(count) / std::max(seconds, 1e-9); }
};

// Runs it, and adds its requests.
template <class Run>
Figure counted(const RequestCounts& counts, Run run) {
  const std::int64_t put = counts.put, get = counts.get, list = counts.list, remove = counts.remove;
  Figure figure = run();
  const double tasks = static_cast<double>(std::max<std::int64_t>(figure.count, 1));
  const auto each = [tasks](std::int64_t after, std::int64_t before) {
    return static_cast<double>(after - before) / tasks;
  };
  figure.requests = {each(counts.put, put), each(counts.get, get), each(counts.list, list),
                     each(counts.remove, remove)};
  return figure;
}

// A progress line on a terminal.
class Progress {
 public:
  Progress(const Program& program, std::string what, std::int64_t of)
      : program_(program), what_(std::move(what)), of_(of) {}
  ~Progress() {
    if (program_.terminal) program_.err << "\r\x1b[K" << std::flush;
  }

  void add(std::int64_t count) {
    const std::int64_t done = done_ += count;
    if (!program_.terminal) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || Steady::now() < next_) return;
    next_ = Steady::now() + std::chrono::milliseconds(100);
    program_.err << fmt::format("\r\x1b[K{} {} of {}", what_, done, of_) << std::flush;
  }
  std::int64_t done() const { return done_; }

 private:
  const Program& program_;
  const std::string what_;
  const std::int64_t of_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex mutex_;
  Steady::time_point next_{};
};

// Calls `step` from that many threads until it returns false. Rethrows the first exception.
template <class Step>
Figure measure(const Program& program, std::string what, std::int64_t tasks, std::int64_t threads, Step step) {
  Progress progress(program, what, tasks);
  std::vector<double> milliseconds;
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto start = Steady::now();
  const auto run = [&] {
    std::vector<double> mine;
    try {
      for (;;) {
        const auto began = Steady::now();
        const std::int64_t count = step();
        if (count == 0) break;
        mine.push_back(std::chrono::duration<double, std::milli>(Steady::now() - began).count());
        progress.add(count);
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
    std::lock_guard lock(mutex);
    milliseconds.insert(milliseconds.end(), mine.begin(), mine.end());
  };
  std::vector<std::thread> all;
  for (std::int64_t i = 0; i < threads; ++i) all.emplace_back(run);
  for (std::thread& thread : all) thread.join();
  if (thrown) std::rethrow_exception(thrown);
  Figure figure{std::move(what), progress.done(), std::chrono::duration<double>(Steady::now() - start).count()};
  std::sort(milliseconds.begin(), milliseconds.end());
  if (!milliseconds.empty()) {
    figure.p50_ms = milliseconds[milliseconds.size() / 2];
    figure.p99_ms = milliseconds[milliseconds.size() * 99 / 100];
  }
  return figure;
}

std::string run_name() {
  std::uint8_t bytes[4];
  fill_random(bytes, sizeof bytes);
  std::string name;
  for (const std::uint8_t byte : bytes) append_hex(name, byte);
  return name;
}

Figure submit_all(const Program& program, const Target& target, const BenchFlags& flags, const std::string& run,
                  bool again) {
  std::atomic<std::int64_t> next = 0;
  return measure(program, again ? "duplicate submit" : "keyed submit", flags.tasks, flags.in_flight,
                 [&]() -> std::int64_t {
                   const std::int64_t i = next++;
                   if (i >= flags.tasks) return 0;
                   SubmitRequest request;
                   request.type = kQueue;
                   request.queue = std::string(kQueue);
                   request.idempotency_key = fmt::format("{}-{}", run, i);
                   const SubmitResult result = submit_one(*target.engine, target.name_space, std::move(request));
                   const auto* receipt = std::get_if<Receipt>(&result);
                   if (!receipt) throw CommandError(kRefused, describe_refusal(std::get<Refusal>(result)));
                   if (receipt->created == again)
                     throw CommandError(kFailed, "a task of this bench was taken from it; is another one running?");
                   return 1;
                 });
}

Figure finish_all(const Program& program, const Target& target, const BenchFlags& flags) {
  const std::int64_t threads = std::min<std::int64_t>(flags.in_flight, 8);
  return measure(program, "claim and finish", flags.tasks, threads, [&]() -> std::int64_t {
    ClaimCall call;
    call.name_space = target.name_space;
    call.queues = {std::string(kQueue)};
    call.types = {std::string(kQueue)};
    call.limit = kClaimed;
    call.worker = kQueue;
    const auto claimed =
        await<std::vector<Claimed>>([&](auto reply) { target.engine->claim(std::move(call), std::move(reply)); });
    if (claimed.empty()) return 0;
    std::vector<Report> reports;
    for (const auto& [task, events] : claimed) {
      reports.push_back({{task.id, task.attempt, task.lease_secret.value()}, Report::Completed{}});
    }
    await<std::vector<FinishOutcome>>([&](auto reply) { target.engine->finish(std::move(reports), std::move(reply)); });
    return static_cast<std::int64_t>(claimed.size());
  });
}

void print(const Program& program, const Target& target, const BenchFlags& flags, const std::vector<Figure>& figures) {
  if (flags.target.json()) {
    JsonWriter out;
    out.begin_object()
        .key("url")
        .string(target.shown)
        .key("in_flight")
        .integer(flags.in_flight)
        .key("figures")
        .begin_array();
    for (const Figure& figure : figures) {
      out.begin_object().key("what").string(figure.what).key("count").integer(figure.count);
      out.key("per_second").number(figure.per_second());
      out.key("p50_ms").number(figure.p50_ms).key("p99_ms").number(figure.p99_ms);
      if (const Requests& each = figure.requests; each.any()) {
        out.key("requests_per_task").begin_object().key("put").number(each.put).key("get").number(each.get);
        out.key("list").number(each.list).key("delete").number(each.remove).end_object();
      }
      out.end_object();
    }
    program.out << out.end_array().end_object().text() << std::endl;
    return;
  }
  Table table({"", ">tasks", ">per second", ">p50 ms", ">p99 ms", "one call is"});
  for (const Figure& figure : figures) {
    const bool submits = figure.what != "claim and finish";
    table.add({figure.what, std::to_string(figure.count), fmt::format("{:.0f}", figure.per_second()),
               fmt::format("{:.2f}", figure.p50_ms), fmt::format("{:.2f}", figure.p99_ms),
               submits ? fmt::format("one task, {} calls at once", flags.in_flight)
                       : fmt::format("up to {} tasks claimed and finished", kClaimed)});
  }
  program.out << table.render(Paint::of(program)) << std::flush;
  for (const Figure& figure : figures) {
    const Requests& each = figure.requests;
    if (!each.any()) continue;
    program.out << fmt::format("{}: {:.2f} PUT, {:.2f} GET, {:.2f} LIST, {:.2f} DELETE for each task\n", figure.what,
                               each.put, each.get, each.list, each.remove)
                << std::flush;
  }
}

int bench(const Program& program, const BenchFlags& flags) {
  if (flags.tasks < 1 || flags.tasks > 10'000'000) throw CommandError(kUsage, "--tasks must be from 1 to 10000000");
  if (flags.in_flight < 1 || flags.in_flight > 1000) throw CommandError(kUsage, "--in-flight must be from 1 to 1000");
  const auto counts = std::make_shared<RequestCounts>();
  const Target target = flags.target.open_or_create(program, counts);
  // Retention 0, so that tasks and their keys are gone when they are finished.
  QueueSettings settings;
  settings.retention = Duration(0);
  target.engine->put_queue(target.name_space, std::string(kQueue), settings);
  finish_all(program, target, flags);  // what an interrupted bench left behind
  const std::string run = run_name();
  std::vector<Figure> figures;
  figures.push_back(counted(*counts, [&] { return submit_all(program, target, flags, run, false); }));
  figures.push_back(counted(*counts, [&] { return submit_all(program, target, flags, run, true); }));
  figures.push_back(counted(*counts, [&] { return finish_all(program, target, flags); }));
  print(program, target, flags, figures);
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("bench", "Measure a server or a store; works in the queue hapax-bench and keeps nothing");
  auto flags = std::make_shared<BenchFlags>();
  command->add_option("--tasks", flags->tasks, "Number of tasks (default: 10000)")->type_name("N");
  command->add_option("--in-flight", flags->in_flight, "Submissions in flight (default: 64)")->type_name("N");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return bench(program, *flags); }; });
}

}  // namespace hapax
