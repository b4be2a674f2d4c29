#include "cli/server_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

namespace hapax {
namespace {

struct Log {
  Log() { sink.set_pattern("%l %v"); }

  void line(spdlog::level::level_enum level, std::string_view text, int at_ms) {
    sink.log(spdlog::details::log_msg(start + std::chrono::milliseconds(at_ms), {}, "", level,
                                      spdlog::string_view_t(text.data(), text.size())));
  }

  std::ostringstream out;
  const spdlog::log_clock::time_point start = spdlog::log_clock::now();
  SparseSink sink{std::make_shared<spdlog::sinks::ostream_sink_st>(out)};
};

TEST(ServerLog, OneCauseIsToldOnceASecondWithACount) {
  Log log;
  for (int i = 0; i < 500; ++i) log.line(spdlog::level::warn, "store: cannot connect to port " + std::to_string(i), i);
  log.line(spdlog::level::warn, "http: something else", 600);
  EXPECT_EQ(log.out.str(), "warning store: cannot connect to port 0\nwarning http: something else\n");
  log.out.str("");
  log.line(spdlog::level::warn, "store: cannot connect to port 7", 1000);
  EXPECT_EQ(log.out.str(),
            "warning store: cannot connect to port 0 (499 more like this in a second)\n"
            "warning store: cannot connect to port 7\n");
}

TEST(ServerLog, TheCountIsToldAlsoIfNothingMoreComes) {
  Log log;
  for (int i = 0; i < 3; ++i) log.line(spdlog::level::err, "broken: " + std::to_string(i) + "a-b", -2000 + i);
  log.sink.flush();
  EXPECT_EQ(log.out.str(), "error broken: 0a-b\nerror broken: 0a-b (2 more like this in a second)\n");
}

TEST(ServerLog, WhatIsNoWarningIsToldEachTime) {
  Log log;
  for (int i = 0; i < 3; ++i) log.line(spdlog::level::info, "served", i);
  EXPECT_EQ(log.out.str(), "info served\ninfo served\ninfo served\n");
}

TEST(ServerLog, WhatIsCriticalIsToldEachTime) {
  Log log;
  for (int i = 0; i < 2; ++i) log.line(spdlog::level::critical, "damaged: " + std::to_string(i), i);
  EXPECT_EQ(log.out.str(), "critical damaged: 0\ncritical damaged: 1\n");
}

}  // namespace
}  // namespace hapax
