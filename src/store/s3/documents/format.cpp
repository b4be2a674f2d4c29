#include "store/s3/documents/format.h"

#include "store/s3/conditions.h"
#include "store/s3/documents/archive.h"
#include "store/s3/documents/names.h"

namespace hapax::s3 {

template <class Archive>
void fields(Archive& archive, Format& format) {
  archive("version", format.version);
  archive("identity", format.identity);
  archive("probed_at", format.probed_at);
}

namespace {

const std::string kName(kFormat);

Found look_at_format(Bucket& bucket) { return bucket.look({&kName, 1}).front(); }

Format new_format(ObjectStore& objects, bool probe) {
  Format format;
  format.identity = random_token();
  if (probe) {
    require_conditional_writes(objects);
    format.probed_at = objects.now();
  }
  return format;
}

// Where a record belongs. Nothing of one whose owner is gone without a trace: it holds no key.
std::optional<std::string> place_of(Bucket& bucket, const Record& record) {
  const LedgerEntry& entry = record.entry;
  std::optional<std::string> queue;
  if (record.task) {
    queue = read_task(*record.task).execution.queue;
  } else if (entry.tombstone) {
    queue = entry.tombstone->queue;
  } else {
    const std::string owner = task_name(entry.owner);
    const Found task = bucket.look({&owner, 1}).front();
    if (task.exists()) queue = read_task(task.content).execution.queue;
  }
  if (!queue) return std::nullopt;
  return record_name(name_scope(entry.identity.scope, record.task_type, *queue), entry.identity.hash);
}

void move_record(Bucket& bucket, const std::string& name) {
  const Found found = bucket.take({&name, 1}).front();
  if (!found.exists()) return;
  const auto place = place_of(bucket, read_record(found.content));
  if (place == name) return;
  if (place) bucket.put(Put{*place, seal(found.content), std::nullopt});  // it is there if this was interrupted before
  bucket.remove_leftovers({name});
}

}  // namespace

std::optional<Format> read_format(Bucket& bucket) {
  const Found found = look_at_format(bucket);
  return found.exists() ? std::optional(Reader::object<Format>(found.content)) : std::nullopt;
}

Format create_format(ObjectStore& objects, bool probe) {
  Bucket bucket(objects);
  bucket.put(Put{kName, seal(Writer::text(new_format(objects, probe))), std::nullopt});
  return read_format(bucket).value();  // of the first writer
}

Format upgrade_format(ObjectStore& objects) {
  Bucket bucket(objects);
  const Found before = look_at_format(bucket);
  const Format format = new_format(objects, true);
  bucket.finish_transactions();
  std::string after;
  for (bool more = true; more;) {
    const Listing listing = bucket.list(std::string(kRecords), after);
    for (const Listed& listed : listing.objects) {
      move_record(bucket, listed.name);
      after = listed.name;
    }
    more = listing.more;
  }
  bucket.put(Put{kName, seal(Writer::text(format)), before.etag});
  return read_format(bucket).value();
}

}  // namespace hapax::s3
