// format.json: which layout the bucket has, and which store it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/s3/transaction/transaction.h"

namespace hapax::s3 {

// 1: a ledger record lay in the folder of its kind of scope. 2: in that of its scope's name; the store has an identity,
// and was created on a bucket whose conditions hold among concurrent writers.
inline constexpr std::int64_t kFormatVersion = 2;

struct Format {
  std::int64_t version = kFormatVersion;
  std::string identity;           // drawn at random when the store is created
  std::optional<Time> probed_at;  // when the bucket's conditions were tried out
};

std::optional<Format> read_format(Bucket& bucket);  // nothing: there is no store

// Tests the bucket's conditions, unless told otherwise, and writes format.json if there is none. Returns what is there.
// Throws Failure::misuse if they do not hold.
Format create_format(ObjectStore& objects, bool probe = true);

// From an older format to the newest, while no other program uses the bucket. Interrupted, it may be begun again.
Format upgrade_format(ObjectStore& objects);

}  // namespace hapax::s3
