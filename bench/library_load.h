// The same work through the C++ library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hapax::bench {

// Drains that many waiting no-op tasks of the type "bench" with a worker of that many threads. Tasks per second.
double library_drain(const std::string& url, std::int64_t tasks, std::size_t threads);

// Milliseconds from a submit to its result, one task at a time on an idle worker of the same app.
std::vector<double> library_latency(const std::string& url, int tasks);

// Milliseconds of one write and fdatasync of a page in that folder.
std::vector<double> fsync_latency(const std::string& folder, int times);

}  // namespace hapax::bench
