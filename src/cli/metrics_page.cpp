#include "cli/metrics_page.h"

#include <charconv>
#include <vector>

#include "client/http_client.h"
#include "core/json.h"

namespace hapax {

namespace {

constexpr auto kTimeout = std::chrono::seconds(5);

HttpAnswer get(const Target& target, const std::string& path) {
  std::vector<std::string> headers;
  if (!target.token.empty()) headers.push_back("Authorization: Bearer " + target.token);
  std::string base = target.url;
  while (base.ends_with('/')) base.pop_back();
  return HttpClient(base, headers).send({.method = "GET", .path = path, .timeout = kTimeout});
}

}  // namespace

EngineCounters read_metrics(std::string_view page) {
  EngineCounters counters;
  const std::pair<std::string_view, std::int64_t*> known[] = {
      {"hapax_submitted_total", &counters.submitted},    {"hapax_deduplicated_total", &counters.deduplicated},
      {"hapax_conflicts_total", &counters.conflicts},    {"hapax_claimed_total", &counters.claimed},
      {"hapax_completed_total", &counters.completed},    {"hapax_failed_attempts_total", &counters.failed_attempts},
      {"hapax_waiting_claims", &counters.waiting_claims}};
  while (!page.empty()) {
    const auto end = page.find('\n');
    const std::string_view line = page.substr(0, end);
    page = end == std::string_view::npos ? std::string_view() : page.substr(end + 1);
    const auto blank = line.find(' ');
    if (line.starts_with('#') || blank == std::string_view::npos) continue;
    for (const auto& [name, counter] : known) {
      double value = 0;
      const std::string_view number = line.substr(blank + 1);
      if (line.substr(0, blank) == name &&
          std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc()) {
        *counter = static_cast<std::int64_t>(value);
      }
    }
  }
  return counters;
}

std::optional<EngineCounters> fetch_counters(const Target& target) {
  if (!target.remote) return {};
  const HttpAnswer answer = get(target, "/metrics");
  if (answer.status != 200) return {};
  return read_metrics(answer.body);
}

std::string fetch_version(const Target& target) {
  const HttpAnswer answer = get(target, "/health");
  const auto no_hapax = [&] {
    return Failure(Failure::Code::misuse, target.shown + " answers, but is not a Hapax server");
  };
  if (answer.status != 200) throw no_hapax();
  try {
    const Json body = parse_json(answer.body);
    const Json* version = body.find("version");
    if (version) return version->text;
  } catch (const InvalidJson&) {}
  throw no_hapax();
}

}  // namespace hapax
