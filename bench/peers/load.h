// The measures of bench/peers, on Hapax through its C++ library: the same steps as load.mjs for the peers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::bench {

struct LoadOptions {
  std::string measure;
  std::int64_t count = 0;
  int in_flight = 32;
  std::int64_t batch = 1000;                             // tasks per call, for `bulk`
  std::string store;                                     // the URL of an empty store
  std::string url;                                       // what the programs open: the store, or a server over it
  std::function<double()> server_cpu_seconds = nullptr;  // of a server over it, so far
  int threads = 2;                                       // of the worker that drains
  bool two_processes = false;                            // `latency`: the worker is not in the submitting program
};

struct LoadFigure {
  std::string unit;
  std::int64_t count = 0;
  double seconds = 0;
  double value = 0;
  double p50 = 0, p99 = 0;  // `latency` only, in milliseconds
  double of_short = 0;      // `long_workflow` only: the same with a tenth of the steps
  // Processor time of one operation: in this process, and in a server. Zero if it was not measured.
  double client_cpu_us = 0, server_cpu_us = 0;
};

bool knows_measure(std::string_view measure);

// Runs the measure, then reads the store and throws unless all of the work was done, once.
LoadFigure run_measure(const LoadOptions& options);

}  // namespace hapax::bench
