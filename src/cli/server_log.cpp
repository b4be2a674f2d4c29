#include "cli/server_log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cctype>
#include <iterator>

namespace hapax {

namespace {

constexpr std::chrono::seconds kPause{1};
constexpr std::size_t kMaxCauses = 100;  // beyond it, all others share one

spdlog::level::level_enum spdlog_level(LogLevel level) {
  if (level == LogLevel::off) return spdlog::level::off;
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level));
}

// The text with # for every word that contains a digit: ids, counts, ports, times.
std::string cause_of(std::string_view text) {
  std::string cause;
  while (!text.empty()) {
    std::size_t end = 0;
    bool has_digit = false;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '-')) {
      has_digit = has_digit || std::isdigit(static_cast<unsigned char>(text[end]));
      ++end;
    }
    has_digit ? cause.append("#") : cause.append(text.substr(0, end));
    if (end < text.size()) cause.push_back(text[end++]);
    text.remove_prefix(end);
  }
  return cause;
}

}  // namespace

void SparseSink::sink_it_(const spdlog::details::log_msg& line) {
  if (line.level < spdlog::level::warn || line.level > spdlog::level::err) return inner_->log(line);
  tell_counts(line.time);
  const std::string_view text(line.payload.data(), line.payload.size());
  const std::string cause = told_.size() < kMaxCauses ? cause_of(text) : "";
  const auto [told, is_new] = told_.try_emplace(cause, Told{line.time, line.level, std::string(text)});
  is_new ? inner_->log(line) : void(++told->second.left_out);
}

void SparseSink::flush_() {
  tell_counts(spdlog::log_clock::now());
  inner_->flush();
}

void SparseSink::tell_counts(spdlog::log_clock::time_point now) {
  for (auto each = told_.begin(); each != told_.end();) {
    const Told& told = each->second;
    if (now - told.at < kPause) {
      ++each;
      continue;
    }
    if (told.left_out > 0) {
      const std::string text = fmt::format("{} ({} more like this in a second)", told.text, told.left_out);
      inner_->log(spdlog::details::log_msg(told.at + kPause, {}, "hapax", told.level, text));
    }
    each = told_.erase(each);
  }
}

void start_log(LogLevel level) {
  auto sink = std::make_shared<SparseSink>(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  auto log = std::make_shared<spdlog::logger>("hapax", std::move(sink));
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  log->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(log));
  set_log_level(level);
  spdlog::flush_every(kPause);  // prints the counts
}

void set_log_level(LogLevel level) { spdlog::default_logger()->set_level(spdlog_level(level)); }

}  // namespace hapax
