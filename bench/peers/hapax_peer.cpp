// hapax_peer: one measure of bench/peers on Hapax. Takes the arguments of the peers' scripts and prints the same line
// of JSON.
//
//   hapax_peer --measure drain --count 20000 --store postgres://…      or sqlite:FILE; --postgres is the same
//   … --server build/bench/hapax     the same over HTTP, through a server of its own
//   … --two-processes                latency: the worker in a process of its own
//
// And for held_open.py, on a store that may have tasks already:
//
//   hapax_peer --soak 30 --first 1000000 --postgres postgres://…
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/json_writer.h"
#include "load.h"
#include "server_process.h"
#include "soak.h"
#include "worker_process.h"

namespace hapax::bench {
namespace {

struct Arguments {
  LoadOptions load;
  std::string server;  // the hapax program; empty: the engine is in this process
  std::string work;    // the URL that a worker process is told
  int starts = -1;
  std::int64_t soak_seconds = 0, soak_first = 0;
};

void declare(CLI::App& command, Arguments& arguments) {
  LoadOptions& load = arguments.load;
  command.add_option("--measure", load.measure);
  command.add_option("--count", load.count)->check(CLI::PositiveNumber);
  command.add_option("--in-flight", load.in_flight)->check(CLI::PositiveNumber);
  command.add_option("--batch", load.batch)->check(CLI::PositiveNumber);
  command.add_option("--threads", load.threads)->check(CLI::PositiveNumber);
  command.add_option("--store,--postgres", load.store, "URL of an empty store");
  command.add_option("--server", arguments.server, "hapax program to serve the store over HTTP");
  command.add_flag("--two-processes", load.two_processes);
  command.add_option("--soak", arguments.soak_seconds, "load the store for so many seconds");
  command.add_option("--first", arguments.soak_first, "number of the first task of a soak");
  command.add_option("--work", arguments.work, "be a worker on that URL");
  command.add_option("--starts", arguments.starts, "descriptor to which a worker writes what it starts");
}

std::string peer_name(const Arguments& arguments) {
  if (!arguments.server.empty()) return "Hapax over HTTP";
  return arguments.load.two_processes ? "Hapax in two processes" : "Hapax";
}

std::string line_of(const Arguments& arguments, const std::optional<LoadFigure>& figure) {
  JsonWriter json;
  json.begin_object().key("peer").string(peer_name(arguments)).key("version").string(HAPAX_PEER_VERSION);
  json.key("measure").string(arguments.load.measure);
  if (!figure) {
    json.key("unsupported").boolean(true);
  } else {
    json.key("unit").string(figure->unit).key("count").integer(figure->count).key("value").number(figure->value);
    if (figure->seconds > 0) json.key("seconds").number(figure->seconds);
    if (figure->p99 > 0) json.key("p50").number(figure->p50).key("p99").number(figure->p99);
    if (figure->client_cpu_us > 0) json.key("client_cpu_us").number(figure->client_cpu_us);
    if (figure->server_cpu_us > 0) json.key("server_cpu_us").number(figure->server_cpu_us);
    if (figure->of_short > 0) json.key("of_short").number(figure->of_short);
    if (arguments.load.measure == "drain") json.key("keeps_results").boolean(true);
    json.key("settings").begin_object().key("threads").integer(arguments.load.threads).end_object();
  }
  json.end_object();
  return json.take();
}

std::string line_of(const SoakFigure& figure) {
  JsonWriter json;
  json.begin_object().key("count").integer(figure.count).key("tasks_per_second").begin_array();
  for (const double rate : figure.tasks_per_second) json.number(rate);
  json.end_array().end_object();
  return json.take();
}

void run(Arguments arguments) {
  if (!arguments.work.empty()) {
    run_worker_process(arguments.work, arguments.load.threads, arguments.starts);
    return;
  }
  if (arguments.soak_seconds > 0) {
    const SoakOptions options{arguments.load.store, std::chrono::seconds(arguments.soak_seconds),
                              arguments.load.threads, arguments.soak_first};
    fmt::print("{}\n", line_of(soak(options)));
    return;
  }
  if (arguments.load.store.empty() || arguments.load.count <= 0) {
    throw std::invalid_argument("--measure, --count and --store are needed");
  }
  std::optional<LoadFigure> figure;
  if (knows_measure(arguments.load.measure)) {
    std::optional<ServerProcess> server;
    if (!arguments.server.empty()) {
      server.emplace(arguments.server, arguments.load.store);
      arguments.load.server_cpu_seconds = [&server] { return server->cpu_seconds(); };
    }
    arguments.load.url = server ? server->url() : arguments.load.store;
    figure = run_measure(arguments.load);
  }
  fmt::print("{}\n", line_of(arguments, figure));
}

}  // namespace
}  // namespace hapax::bench

int main(int argc, char** argv) {
  CLI::App command("One measure of bench/peers on Hapax");
  hapax::bench::Arguments arguments;
  hapax::bench::declare(command, arguments);
  CLI11_PARSE(command, argc, argv);
  try {
    hapax::bench::run(std::move(arguments));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "hapax_peer: {}\n", error.what());
    return 1;
  }
}
