#include "open/examine_store.h"

#include <algorithm>

#include "store/s3/lifecycle.h"
#include "store/s3/names.h"
#include "store/s3/probe_bucket.h"

namespace hapax {

namespace {

bool is_s3(const std::string& url) { return url.starts_with("s3://"); }

}  // namespace

std::vector<Finding> examine_store(const std::string& url) {
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

std::optional<std::string> set_store_lifecycle(const std::string& url) {
  if (!is_s3(url)) return {};
  const std::vector<std::string> folders{"idempotency/", "tasks/",  "ready/",       "running/", "due/",
                                         "closed/",      "steps/",  "runs/",        "ends/",    "requests/",
                                         "settings/",    "queues/", "transactions/"};
  S3Wire wire(parse_s3_url(url));
  return set_lifecycle(wire, folders);
}

}  // namespace hapax
