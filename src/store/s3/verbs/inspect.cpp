// A walk over every object that is the truth, for `hapax doctor --deep`. Hints say nothing that is not written again
// from the truth.
#include <fmt/format.h>

#include <array>

#include "store/s3/verbs/verbs.h"

namespace hapax::s3 {

namespace {

constexpr std::array<std::string_view, 7> kTruth{"activities/", "idempotency/", "queues/",      "requests/",
                                                 "settings/",   "tasks/",       "transactions/"};
constexpr std::int32_t kReadAtOnce = 16;  // each may be large

void check(const std::string& name, const Found& found, Inspection& inspection) {
  ++inspection.checked;
  if (!found.damage.empty()) {
    inspection.findings.push_back(found.damage);
    return;
  }
  if (!found.exists()) return;
  try {
    if (name.starts_with(kTasks)) read_task(found.content);
    if (name.starts_with("idempotency/")) read_record(found.content);
    if (name.starts_with("requests/")) read_request(found.content);
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
    inspection.findings.push_back(fmt::format("the object {}: {}", name, failure.what()));
  }
}

}  // namespace

// `from` is the last name that was looked at.
Inspection inspect(Bucket& bucket, const std::string& from, std::int32_t limit) {
  Inspection inspection;
  for (const std::string_view folder : kTruth) {
    std::string after = from.starts_with(folder) ? from : "";
    if (after.empty() && folder < from) continue;  // done before
    for (bool more = true; more;) {
      const Listing listing = bucket.list(std::string(folder), after, kReadAtOnce);
      std::vector<std::string> names;
      for (const Listed& listed : listing.objects) names.push_back(listed.name);
      if (names.empty()) break;
      const auto found = bucket.look_at_each(names);
      for (std::size_t i = 0; i < names.size(); ++i) check(names[i], found[i], inspection);
      after = names.back();
      more = listing.more;
      if (inspection.checked >= limit) {
        inspection.next = after;
        return inspection;
      }
    }
  }
  return inspection;
}

}  // namespace hapax::s3
