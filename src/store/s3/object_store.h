// A bucket as the store sees it: named objects, each with a version, written under a condition. The real one speaks S3
// (s3_objects.h); one in memory replaces it where tests count, cut or replay requests (memory_objects.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace hapax {

// The version of an object's content, as the bucket names it; without quotation marks.
using Etag = std::string;

struct Object {
  std::string name;
  std::string body;
  Etag etag;
};

// One conditional write.
struct Put {
  std::string name;
  std::string body;
  std::optional<Etag> replaces;  // only if the object still has this version; absent: only if there is none
};

struct PutOutcome {
  bool written = false;  // false: the condition does not hold, nothing changed
  Etag etag;             // where written
};

struct Listed {
  std::string name;
  Time modified_at;
};

struct Listing {
  std::vector<Listed> objects;  // by name
  bool more = false;
};

// All may be called from any thread. A batch is sent all at once, in no order, and answered in the order of its items;
// each item stands for itself. Retries what is safe to send again, with jitter, and a write whose answer was lost is
// settled by reading back: `body` carries a token of its writer, so that a 412 to one's own repeated write is told from
// another's. Throws Failure::unavailable if the bucket does not answer (a write may then have been done or not:
// Failure::outcome_unknown).
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // By the bucket's own clock (its Date header), as close to the millisecond as it can be estimated; never runs
  // backwards.
  virtual Time now() = 0;

  virtual std::vector<std::optional<Object>> get(std::span<const std::string> names) = 0;
  virtual std::vector<PutOutcome> put(std::span<const Put> puts) = 0;
  // Unconditional, and no error if there is no such object: many servers support no conditions on it.
  virtual void remove(std::span<const std::string> names) = 0;
  // The objects whose names begin with `prefix` and come after `after`.
  virtual Listing list(const std::string& prefix, const std::string& after, std::int32_t limit) = 0;

  // Ends requests in flight, and all later ones, as if the bucket did not answer.
  virtual void interrupt() {}

  std::optional<Object> get(const std::string& name) { return get(std::span(&name, 1)).front(); }
  PutOutcome put(const Put& put) { return this->put(std::span(&put, 1)).front(); }
  void remove(const std::string& name) { remove(std::span(&name, 1)); }
};

}  // namespace hapax
