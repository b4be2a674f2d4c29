// The server's log, on standard error. Repeated warnings and errors are logged once per cause and second, with a count.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include <spdlog/sinks/base_sink.h>

#include "config/config.h"

namespace hapax {

// Makes it the process' log.
void start_log(LogLevel level);
void set_log_level(LogLevel level);

// Passes lines on to another sink, critical ones always. Of warnings and errors with the same cause (those that differ
// only in words with digits) it passes the first one in a second, and at the end of the second how many more there
// were.
class SparseSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit SparseSink(spdlog::sink_ptr inner) : inner_(std::move(inner)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override;
  void flush_() override;
  void set_pattern_(const std::string& pattern) override { inner_->set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    inner_->set_formatter(std::move(formatter));
  }

 private:
  struct Told {
    spdlog::log_clock::time_point at;
    spdlog::level::level_enum level;
    std::string text;
    std::size_t left_out = 0;
  };

  void tell_counts(spdlog::log_clock::time_point now);

  const spdlog::sink_ptr inner_;
  std::map<std::string, Told> told_;  // by cause, in the last second
};

}  // namespace hapax
