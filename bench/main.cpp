// ./dev bench: how fast Hapax is on this machine, as ratios against bare loops over the same SQLite in the same run.
// The measures are interleaved and repeated; figures are medians.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "bare_beast.h"
#include "bare_sqlite.h"
#include "core/time.h"
#include "engine_load.h"
#include "figures.h"
#include "http_load.h"
#include "library_load.h"
#include "server_process.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string binary;
  std::string json = "bench.json";
  fs::path dir = fs::temp_directory_path() / "hapax-bench";
  int rounds = 3;
  double scale = 1;    // of the number of tasks
  std::string only;    // one group of measures; empty: all
  bool smoke = false;  // little of everything: does it still work? No target fails it

  std::int64_t count(double n) const { return std::max<std::int64_t>(1000, static_cast<std::int64_t>(n * scale)); }
};

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {}

  void run() {
    const std::pair<const char*, void (Bench::*)()> groups[] = {
        {"submits", &Bench::submits}, {"claims", &Bench::claims}, {"closed", &Bench::closed_around},
        {"http", &Bench::http},       {"memory", &Bench::memory}, {"library", &Bench::library},
        {"latency", &Bench::latency}};
    for (const auto& [name, group] : groups) {
      if (options_.only.empty() || options_.only == name) (this->*group)();
    }
  }

  const Figures& figures() const { return figures_; }

 private:
  // An empty file with the store's schema.
  std::string fresh() {
    fs::remove_all(options_.dir);
    fs::create_directories(options_.dir);
    SqliteOptions sqlite;
    sqlite.path = (options_.dir / "bench.db").string();
    const SystemClock clock;
    open_sqlite_store(sqlite, clock);
    return sqlite.path;
  }

  void submits() {
    const std::int64_t tasks = options_.count(60'000);
    std::vector<double> bare, bare_of_64, engine;
    for (int round = 0; round < options_.rounds; ++round) {
      bare_of_64.push_back(bare_keyed_inserts(fresh(), tasks, 64));
      double best = bare_of_64.back();
      for (std::int64_t batch : {200, 500, 1000}) best = std::max(best, bare_keyed_inserts(fresh(), tasks, batch));
      bare.push_back(best);
      engine.push_back(engine_keyed_submits(fresh(), tasks, 64));
    }
    const double ratio = median(engine) / median(bare);
    figures_.add({"bare loop: keyed inserts, best batch size", median(bare), "rows/s", "", 0, "", true});
    figures_.add({"engine: keyed submits, 64 in flight", median(engine), "tasks/s", "bare loop", ratio, ">= 0.50",
                  ratio >= 0.5});
    // With 64 in flight a transaction never has more than 64, however good the engine is.
    figures_.add({"bare loop: the same in transactions of 64", median(bare_of_64), "rows/s", "its best",
                  median(bare_of_64) / median(bare), "", true});
  }

  void claims() {
    const std::int64_t tasks = options_.count(60'000);
    std::vector<double> bare, engine;
    for (int round = 0; round < options_.rounds; ++round) {
      double best = 0;
      for (std::int64_t batch : {100, 500}) {
        const std::string path = fresh();
        bare_keyed_inserts(path, tasks, 1000);
        best = std::max(best, bare_claim_complete(path, batch));
      }
      bare.push_back(best);
      const std::string path = fresh();
      engine_keyed_submits(path, tasks, 1024);
      engine.push_back(engine_claim_finish(path, tasks, 2, 500));
    }
    const double ratio = median(engine) / median(bare);
    figures_.add({"bare loop: claim + complete, best batch size", median(bare), "rows/s", "", 0, "", true});
    figures_.add({"engine: claim + finish, 2 workers, batches of 500", median(engine), "tasks/s", "bare loop", ratio,
                  ">= 0.50", ratio >= 0.5});
  }

  void closed_around() {
    const std::int64_t tasks = options_.count(20'000), closed = options_.count(1'000'000);
    std::vector<double> without, with;
    const std::string full = fresh();
    const std::string kept = full + ".closed";
    fill_with_closed(full, closed);
    fs::copy_file(full, kept);
    for (int round = 0; round < options_.rounds; ++round) {
      for (bool crowded : {false, true}) {
        const std::string path = options_.dir / fmt::format("round.db");
        for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path + suffix);
        if (crowded) {
          fs::copy_file(kept, path);
        } else {
          SqliteOptions sqlite;
          sqlite.path = path;
          const SystemClock clock;
          open_sqlite_store(sqlite, clock);
        }
        engine_keyed_submits(path, tasks, 1024);
        (crowded ? with : without).push_back(engine_claim_finish(path, tasks, 1, 100));
      }
    }
    const double ratio = median(without) / median(with);
    figures_.add(
        {"engine: claim + finish, batches of 100, nothing closed", median(without), "tasks/s", "", 0, "", true});
    figures_.add({fmt::format("engine: the same with {} closed", closed), median(with), "tasks/s",
                  "cost, nothing closed", ratio, "<= 1.20", ratio <= 1.2});
  }

  void http() {
    const std::int64_t tasks = options_.count(60'000);
    std::vector<double> bare, bare_cpu, submits, duplicates, server_cpu;
    const auto body = [](std::int64_t i) {
      return fmt::format(R"({{"type":"charge","input":{{"order":{},"amount":99.95}},"idempotency_key":"order-{}"}})", i,
                         i);
    };
    const auto cpu_us = [&](const ServerProcess& server) {
      return 1e6 * server.cpu_seconds() / static_cast<double>(tasks);
    };
    for (int round = 0; round < options_.rounds; ++round) {
      {
        const ServerProcess server("/proc/self/exe", "none");
        bare.push_back(post_load(server.port(), "/v1/tasks", tasks, 64, 201, body));
        bare_cpu.push_back(cpu_us(server));
      }
      const ServerProcess server(options_.binary, "sqlite:" + fresh());
      submits.push_back(post_load(server.port(), "/v1/tasks", tasks, 64, 201, body));
      server_cpu.push_back(cpu_us(server));
      duplicates.push_back(post_load(server.port(), "/v1/tasks", tasks, 64, 200, body));
    }
    figures_.add({"bare Beast: the same requests, nothing done", median(bare), "req/s", "", 0, "", true});
    figures_.add({"bare Beast: server CPU per request", median(bare_cpu), "us", "", 0, "", true});
    figures_.add({"HTTP: keyed submits, 64 connections", median(submits), "req/s", "20,000/s", median(submits) / 20'000,
                  ">= 1.00", median(submits) >= 20'000});
    figures_.add({"HTTP: server CPU per keyed submit", median(server_cpu), "us", "", 0, "", true});
    figures_.add({"HTTP: duplicate submits, 64 connections", median(duplicates), "req/s", "bare Beast",
                  median(duplicates) / median(bare), "", true});
  }

  void memory() {
    const std::int64_t tasks = options_.count(1'000'000);
    const std::string path = fresh();
    engine_keyed_submits(path, tasks, 1024);
    const ServerProcess server(options_.binary, "sqlite:" + path);
    const auto submit = [](std::int64_t i) { return fmt::format(R"({{"type":"t","idempotency_key":"new-{}"}})", i); };
    post_load(server.port(), "/v1/tasks", 5'000, 16, 201, submit);
    const auto claim = [](std::int64_t) { return std::string(R"({"limit":10})"); };
    post_load(server.port(), "/v1/claims", 2'000, 16, 200, claim);
    const double mb = server.resident_mb();
    figures_.add({fmt::format("server: resident memory with {} pending", tasks), mb, "MB", "", 0, "< 100", mb < 100});
  }

  void library() {
    const std::int64_t tasks = options_.count(20'000);
    std::vector<double> engine, embedded, remote;
    const auto filled = [&] {
      const std::string path = fresh();
      engine_keyed_submits(path, tasks, 1024);
      return path;
    };
    for (int round = 0; round < options_.rounds; ++round) {
      engine.push_back(engine_claim_finish(filled(), tasks, 2, 500));
      embedded.push_back(library_drain("sqlite:" + filled(), tasks, 2));
      const ServerProcess server(options_.binary, "sqlite:" + filled());
      remote.push_back(library_drain(server.url(), tasks, 2));
    }
    const double over_engine = median(engine) / median(embedded), of_embedded = median(remote) / median(embedded);
    figures_.add({"engine: drain of no-op tasks", median(engine), "tasks/s", "", 0, "", true});
    figures_.add({"library embedded: drain of no-op tasks", median(embedded), "tasks/s", "cost, engine", over_engine,
                  "<= 1.20", over_engine <= 1.2});
    figures_.add({"library over HTTP: drain of no-op tasks", median(remote), "tasks/s", "library embedded", of_embedded,
                  ">= 0.50", of_embedded >= 0.5});
  }

  void latency() {
    std::vector<double> latency_embedded, latency_remote, fsyncs;
    for (int round = 0; round < options_.rounds; ++round) {
      latency_embedded.push_back(median(library_latency("sqlite:" + fresh(), 200)));
      fsyncs.push_back(median(fsync_latency(options_.dir.string(), 200)));
      const ServerProcess server(options_.binary, "sqlite:" + fresh());
      latency_remote.push_back(median(library_latency(server.url(), 200)));
    }
    const double fsync = median(fsyncs);
    figures_.add({"disk: five pages, as a commit writes, and fdatasync, p50", fsync, "ms", "", 0, "", true});
    // A task takes two commits: submitted and handed out in one, then finished.
    const double own_embedded = median(latency_embedded) - 2 * fsync, own_remote = median(latency_remote) - 2 * fsync;
    figures_.add({"library embedded: submit to result, p50", median(latency_embedded), "ms", "", 0, "", true});
    figures_.add({"  without its two fsyncs", own_embedded, "ms", "", 0, "< 1", own_embedded < 1});
    figures_.add({"library over HTTP: submit to result, p50", median(latency_remote), "ms", "", 0, "", true});
    figures_.add({"  without its two fsyncs", own_remote, "ms", "", 0, "< 2", own_remote < 2});
  }

  const Options options_;
  Figures figures_;
};

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--binary" && has_value)
      options.binary = argv[++i];
    else if (arg == "--json" && has_value)
      options.json = argv[++i];
    else if (arg == "--dir" && has_value)
      options.dir = argv[++i];
    else if (arg == "--rounds" && has_value)
      options.rounds = std::stoi(argv[++i]);
    else if (arg == "--scale" && has_value)
      options.scale = std::stod(argv[++i]);
    else if (arg == "--only" && has_value)
      options.only = argv[++i];
    else if (arg == "--smoke")
      options.smoke = true;
    else {
      fmt::print(stderr,
                 "usage: hapax_bench --binary HAPAX [--json FILE] [--dir DIR] [--rounds N] [--scale X]\n"
                 "                   [--only submits|claims|closed|http|memory|library|latency] [--smoke]\n");
      return 2;
    }
  }
  if (options.smoke) {
    options.rounds = 1;
    options.scale = 0.02;
  }
  Bench bench(options);
  bench.run();
  bench.figures().print();
  std::ofstream(options.json) << bench.figures().to_json() << '\n';
  std::filesystem::remove_all(options.dir);
  return options.smoke || bench.figures().all_met() ? 0 : 1;
}

}  // namespace
}  // namespace hapax::bench

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "serve") == 0) return hapax::bench::serve_bare_beast(), 0;  // for run()
    return hapax::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hapax_bench: {}\n", error.what());
    return 1;
  }
}
