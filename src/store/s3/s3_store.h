// The store in a bucket and nothing else: any number of servers and workers share it without talking to each other.
// docs/s3.md has the protocol: the layout, each crash, each race, and why it is safe.
#pragma once

#include <chrono>
#include <memory>

#include "store/call_deadline.h"
#include "store/s3/object_store.h"
#include "store/store.h"

namespace hapax {

struct S3StoreOptions {
  bool create = true;                // false: a bucket without a store is a Failure::misuse
  bool migrate = false;              // an older format is brought up to date instead of being refused
  bool probe = true;                 // false: this bucket's conditions have been tested already
  Duration timeout = kStoreTimeout;  // of every call
  // How often it announces its changes, at most, and how often it polls for others'. Zero: never.
  std::chrono::milliseconds pulse{500};
  // How many items of a batch are worked on at once, where each takes several rounds of requests. 1: strictly in order.
  std::size_t in_flight = 16;
};

// A missing store is created, once the bucket's conditions have been found to hold among concurrent writers. Throws
// Failure::misuse if they do not, or if the bucket holds data of a newer format, or of an older one (says to run `hapax
// migrate`).
std::unique_ptr<Store> open_s3_store(std::shared_ptr<ObjectStore> objects, const S3StoreOptions& options = {});

// Writes missing hints again: after this nothing is invisible. Reads the whole bucket; may run beside everything.
// Returns how many there were.
std::int64_t rebuild_s3_hints(ObjectStore& objects);

}  // namespace hapax
