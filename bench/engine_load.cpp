#include "engine_load.h"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <stdexcept>
#include <vector>

#include "core/json.h"
#include "engine/local_engine.h"
#include "figures.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax::bench {

namespace {

const SystemClock kClock;

std::unique_ptr<LocalEngine> open_engine(const std::string& path) {
  SqliteOptions options;
  options.path = path;
  return start_engine(open_sqlite_store(options, kClock), {});
}

void drain(Engine& engine, std::atomic<std::int64_t>& left, std::int32_t batch) {
  constexpr double kPatience = 30;  // seconds without a task although some are left
  double last_claim = seconds_now();
  while (left > 0) {
    auto claimed = await<std::vector<Claimed>>([&](auto reply) {
      engine.claim({.name_space = "default",
                    .queues = {"default"},
                    .limit = batch,
                    .worker = "bench",
                    .lease = Duration(60'000),
                    .wait = Duration(0)},
                   std::move(reply));
    });
    if (claimed.empty()) {
      if (seconds_now() - last_claim > kPatience) {
        throw std::runtime_error(fmt::format("{} tasks are left and none can be claimed", left.load()));
      }
      continue;
    }
    last_claim = seconds_now();
    std::vector<Report> reports;
    for (const auto& [execution, events] : claimed) {
      reports.push_back(
          {{execution.id, execution.attempt, *execution.lease_secret}, Report::Completed{"{\"ok\":true}"}});
    }
    const auto outcomes =
        await<std::vector<FinishOutcome>>([&](auto reply) { engine.finish(std::move(reports), std::move(reply)); });
    for (const FinishOutcome& outcome : outcomes) {
      if (!outcome.accepted) throw std::runtime_error("a finish was refused");
    }
    left -= static_cast<std::int64_t>(outcomes.size());
  }
}

}  // namespace

double engine_keyed_submits(const std::string& path, std::int64_t tasks, int in_flight) {
  const auto engine = open_engine(path);
  std::counting_semaphore<4096> places(in_flight);
  std::atomic<std::int64_t> created = 0;
  const Json input = parse_json('"' + std::string(98, 'x') + '"');
  const double start = seconds_now();
  for (std::int64_t i = 0; i < tasks; ++i) {
    places.acquire();
    SubmitRequest request;
    request.type = "bench";
    request.input = input;
    request.idempotency_key = fmt::format("order-{:012}", i);
    std::vector<SubmitRequest> requests;
    requests.push_back(std::move(request));
    engine->submit("default", std::move(requests), [&](Answer<std::vector<SubmitResult>> answer) {
      const auto results = std::move(answer).get();
      if (std::get<Receipt>(results[0]).created) ++created;
      places.release();
    });
  }
  for (int i = 0; i < in_flight; ++i) places.acquire();
  const double rate = static_cast<double>(tasks) / (seconds_now() - start);
  if (created != tasks) throw std::runtime_error(fmt::format("{} of {} submits created a task", created.load(), tasks));
  return rate;
}

double engine_claim_finish(const std::string& path, std::int64_t tasks, int workers, std::int32_t batch) {
  const auto engine = open_engine(path);
  std::atomic<std::int64_t> left = tasks;
  const double start = seconds_now();
  std::vector<std::future<void>> threads;
  for (int i = 0; i < workers; ++i) {
    threads.push_back(std::async(std::launch::async, [&] { drain(*engine, left, batch); }));
  }
  for (auto& thread : threads) thread.get();
  return static_cast<double>(tasks) / (seconds_now() - start);
}

}  // namespace hapax::bench
