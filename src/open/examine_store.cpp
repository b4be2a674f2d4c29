#include "open/examine_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "open/open_engine.h"
#include "store/s3/client/lifecycle.h"
#include "store/s3/client/probe_bucket.h"
#include "store/s3/documents/names.h"
#include "store/sqlite/sqlite_store.h"

namespace hapax {

namespace {

bool is_s3(const std::string& url) { return url.starts_with("s3://"); }

std::optional<std::string> sqlite_file(const std::string& url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme) || url.size() == kScheme.size()) return std::nullopt;
  return url.substr(kScheme.size());
}

// A small difference is normal between two clocks that are set well, and time passes while the file is read.
std::vector<Finding> examine_file(const std::string& path) {
  constexpr Duration kLittle{5'000};
  const Time now = SystemClock().now();
  const StampsAhead ahead = find_stamps_ahead(path, now + kLittle);
  if (ahead.executions == 0) return {};
  return {{Finding::Verdict::warn, "timestamps",
           fmt::format("{} executions have creation or start times in the future, up to {}, {} ahead of this machine's "
                       "clock: it was ahead, or is behind now; set it right. A server counts delays and leases again",
                       ahead.executions, format_time(ahead.latest), format_duration(ahead.latest - now))}};
}

}  // namespace

std::vector<Finding> examine_store(const std::string& url) {
  if (const auto path = sqlite_file(url))
    return std::filesystem::exists(*path) ? examine_file(*path) : std::vector<Finding>();
  if (!is_s3(url)) return {};
  S3Objects objects(parse_s3_url(url));
  std::vector<Finding> findings = probe_bucket(objects.wire());
  const bool fit = std::none_of(findings.begin(), findings.end(),
                                [](const Finding& finding) { return finding.verdict == Finding::Verdict::fail; });
  if (fit && !objects.get(std::string(s3::kFormat))) {
    findings.push_back({Finding::Verdict::warn, "store", "there is none yet; hapax serve or hapax migrate creates it"});
  }
  return findings;
}

std::vector<Finding> inspect_store(const std::string& url, const std::function<void(std::int64_t)>& progress) {
  constexpr std::int32_t kPart = 1000;
  OpenStoreOptions options;
  options.create = false;
  options.timeout = std::chrono::hours(1);  // a part may have to read a whole file
  const std::unique_ptr<Store> store = open_store(url, std::move(options));
  std::vector<Finding> findings;
  std::int64_t checked = 0;
  std::string from;
  do {
    Inspection part = store->inspect(from, kPart);
    checked += part.checked;
    for (std::string& finding : part.findings) {
      findings.push_back({Finding::Verdict::fail, "damage", std::move(finding)});
    }
    from = std::move(part.next);
    progress(checked);
  } while (!from.empty());
  if (findings.empty()) {
    findings.push_back({Finding::Verdict::ok, "data", fmt::format("{} items read, none of them damaged", checked)});
  } else {
    findings.push_back(
        {Finding::Verdict::fail, "data",
         fmt::format("{} of {} items are damaged: stop the servers and restore the store from a backup, or"
                     " submit again what is named above; everything else is intact",
                     findings.size(), checked)});
  }
  return findings;
}

std::optional<std::string> set_store_lifecycle(const std::string& url) {
  if (!is_s3(url)) return {};
  const std::vector<std::string> folders{"idempotency/", "tasks/",  "ready/",        "running/", "due/",
                                         "closed/",      "steps/",  "runs/",         "ends/",    "requests/",
                                         "settings/",    "queues/", "transactions/", "workers/"};
  S3Wire wire(parse_s3_url(url));
  return set_lifecycle(wire, folders);
}

}  // namespace hapax
