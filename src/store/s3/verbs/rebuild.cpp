#include <algorithm>
#include <set>

#include "store/s3/documents/archive.h"
#include "store/s3/documents/names.h"
#include "store/s3/s3_store.h"
#include "store/s3/transaction/transaction.h"

namespace hapax {

namespace {

using namespace s3;

// Of an object of any kind that names its own hints.
struct OwnHints {
  std::vector<std::string> hints;
};
template <class Archive>
void fields(Archive& archive, OwnHints& own) {
  archive("hints", own.hints);
}

constexpr std::size_t kAtOnce = 64;

// Calls `visit` with the name and content of each object under the prefix, graves included.
template <class Visit>
void for_each_object(Bucket& bucket, const std::string& prefix, Visit visit) {
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket.list(prefix, after);
    std::vector<std::string> names;
    for (const Listed& listed : listing.objects) names.push_back(listed.name);
    for (std::size_t from = 0; from < names.size(); from += kAtOnce) {
      const auto part = std::span(names).subspan(from, std::min(kAtOnce, names.size() - from));
      const auto found = bucket.look(part);
      for (std::size_t i = 0; i < part.size(); ++i) visit(part[i], found[i]);
    }
    if (!names.empty()) after = names.back();
    more = listing.more;
  }
}

}  // namespace

std::int64_t rebuild_s3_hints(ObjectStore& objects) {
  Bucket bucket(objects);
  bucket.finish_transactions();
  std::vector<std::string> wanted;
  std::set<std::string> queues;
  std::int64_t rebuilt = 0;
  const auto put_wanted = [&] {
    std::vector<Put> puts;
    for (const std::string& name : wanted) puts.push_back({name, seal(""), std::nullopt});
    for (const PutOutcome& outcome : bucket.put(puts)) rebuilt += outcome.written ? 1 : 0;
    wanted.clear();
  };
  const auto want = [&](std::string name) {
    wanted.push_back(std::move(name));
    if (wanted.size() >= kAtOnce) put_wanted();
  };
  const auto want_of_grave = [&](const std::string& name, const Found& found) {
    if (found.grave) want(end_hint(End::grave, found.grave->keep_until, name));
  };
  for_each_object(bucket, std::string(kTasks), [&](const std::string& name, const Found& found) {
    want_of_grave(name, found);
    if (!found.exists()) return;
    const TaskDocument document = read_task(found.content);
    for (const std::string& hint : document.hints) want(hint);
    const std::string used = used_queue_name(document.execution.name_space, document.execution.queue);
    if (queues.insert(used).second) want(used);
  });
  for_each_object(bucket, std::string(kRecords), [&](const std::string& name, const Found& found) {
    want_of_grave(name, found);
    if (!found.exists()) return;
    const LedgerEntry entry = read_record(found.content).entry;
    if (entry.tombstone && entry.expires_at) want(end_hint(End::identity, *entry.expires_at, name));
  });
  for_each_object(bucket, "requests/", [&](const std::string& name, const Found& found) {
    want_of_grave(name, found);
    if (found.exists()) want(end_hint(End::request, read_request(found.content).expires_at, name));
  });
  for (const std::string prefix : {"activities/", "firings/"}) {
    for_each_object(bucket, prefix, [&](const std::string& name, const Found& found) {
      want_of_grave(name, found);
      if (!found.exists()) return;
      for (std::string& hint : Reader::object<OwnHints>(found.content).hints) want(std::move(hint));
    });
  }
  put_wanted();
  return rebuilt;
}

}  // namespace hapax
