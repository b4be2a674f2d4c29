// Changes several objects atomically, in a bucket that can change only one at a time.
//
// A transaction reads objects with their versions, and decides. Then it
//   1. locks each object that it will change: the same content, with a lock (a new object: nothing but the lock);
//   2. looks again at what it only read: still the same version, not locked by another;
//   3. commits: puts transactions/{id} with the new contents of all of them, if there is none;
//   4. applies: writes each new content, without the lock;
//   5. removes transactions/{id}.
// A process that meets a lock reads transactions/{id}. Committed: it applies the transaction itself. Aborted: it
// removes the lock. Absent and the lock has expired: it puts transactions/{id} as aborted, and that PUT decides between
// it and the committer. Absent and the lock is valid: it waits a little; a reader does not, because the content under
// the lock is still the truth.
//
// One changed object and nothing else read needs none of this: one conditional PUT.
//
// DELETE takes no condition, so a deleted object is first overwritten with a grave, under a condition like any other
// change. Removing the grave is the last act, and only a final one is removed: no one overwrites that for kFinalTime.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "store/s3/documents/documents.h"
#include "store/s3/documents/envelope.h"
#include "store/s3/documents/names.h"
#include "store/s3/object_store.h"

namespace hapax::s3 {

// Time bounds. A writer begins to write a decision within kLateness of reading, by its own steady clock, or reads
// again; and a request in flight ends within 30 seconds (kLongestPatience of s3_objects.h). So a deleted object stays
// as a grave for kGraveTime from its creation, a hint without a truth stays for that long, and a final grave is left
// alone for kFinalTime: by then no such write is in flight.
inline constexpr Duration kLockTime{10'000};
inline constexpr std::chrono::seconds kLateness{10};
inline constexpr Duration kGraveTime{60'000};
inline constexpr Duration kFinalTime{60'000};

// What is stored under a name.
struct Found {
  std::string content;       // empty: there is nothing
  std::optional<Etag> etag;  // what a write replaces; there may be one without content
  std::optional<Grave> grave;
  std::string damage;  // by look_at_each() alone: why it cannot be read

  bool exists() const { return !content.empty(); }
};

// The bucket of one call of a verb. For any number of threads.
// The queues that this process has marked as used. A mark stays, so that a queue is known after all its executions are
// gone.
class QueueMarks {
 public:
  std::vector<UsedQueue> missing(const std::set<UsedQueue>& queues);
  void add(const std::vector<UsedQueue>& queues);
  void forget();

 private:
  std::mutex mutex_;
  std::set<UsedQueue> marked_;
};

class Bucket {
 public:
  // Without `marks`, no queue is marked: for readers.
  explicit Bucket(ObjectStore& objects, QueueMarks* marks = nullptr) : objects_(objects), marks_(marks) {}

  Time now() { return objects_.now(); }
  bool wrote() const { return wrote_; }  // or may have: a PUT was sent

  // Like look(), but one that cannot be read does not affect the others.
  std::vector<Found> look_at_each(std::span<const std::string> names);

  // As they are now. Never waits.
  std::vector<Found> look(std::span<const std::string> names);
  // For a change. Waits for transactions in flight, and finishes abandoned ones. Throws Failure::unavailable if one
  // takes too long.
  std::vector<Found> take(std::span<const std::string> names);

  Listing list(const std::string& prefix, const std::string& after = "", std::int32_t limit = 1000) {
    return objects_.list(prefix, after, limit);
  }
  // The ledger record of that hash in any scope: one LIST and one GET for each scope that has records.
  std::optional<std::string> find_record(const IdentityHash& hash);
  // Applies committed transactions that were abandoned; removes old aborted ones. True if anything was applied.
  bool finish_transactions();

  std::vector<PutOutcome> put(std::span<const Put> puts);
  bool put(const Put& put) { return this->put(std::span(&put, 1)).front().written; }
  void put_hints(const std::vector<std::string>& names);
  void mark_used(const std::set<UsedQueue>& queues);  // one PUT for each, once for each process
  // Leftovers are harmless: a bucket that does not answer now is not a failure of what was done before.
  void remove_leftovers(const std::vector<std::string>& names);

 private:
  friend class Transaction;
  struct Committed;

  std::optional<Committed> committed(const std::string& id);
  bool settle(const std::string& name, const Object& object, const Envelope& envelope);
  void unlock(const std::string& name, const Etag& etag, const std::string& content);
  void apply(const std::string& id, const Committed& transaction, std::map<std::string, Etag> locked);

  ObjectStore& objects_;
  QueueMarks* marks_;
  std::atomic<bool> wrote_ = false;
};

class Transaction {
 public:
  explicit Transaction(Bucket& bucket) : bucket_(bucket) {}

  const Found& read(const std::string& name);
  void prefetch(std::span<const std::string> names);
  void forget(const std::string& name) { found_.erase(name); }  // to be read again

  void write(const std::string& name, std::string content);
  // A new object that no other process can create, because its creator changes another object of this transaction.
  void create(const std::string& name, std::string content);
  void add_hint(std::string name) { hints_.push_back(std::move(name)); }     // stored before the rest
  void drop_hint(std::string name) { dropped_.push_back(std::move(name)); }  // removed after it

  // False: another process was faster, nothing was changed. Read and decide again.
  bool commit();
  // For a ledger record and the new task that it names and carries: the record is what decides, and is all it takes for
  // anybody to make the task.
  bool commit_record_and_task(const std::string& record, const std::string& task);

 private:
  struct Write {
    std::string content;
    bool created = false;
  };

  bool late() const { return std::chrono::steady_clock::now() - started_ > kLateness; }
  bool commit_one();
  bool commit_all(const std::vector<std::string>& only_read);
  std::optional<std::map<std::string, Etag>> lock(const Lock& lock);
  bool still_the_same(const std::vector<std::string>& names);
  void release(const std::map<std::string, Etag>& locked);
  void clear_away(const std::string& name, const std::string& content);

  Bucket& bucket_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<std::string, Found> found_;
  std::map<std::string, Write> writes_;
  std::vector<std::string> hints_, dropped_;
};

// Waits a little, longer each time, never as long as the others.
void pause_before_try(int tried);

}  // namespace hapax::s3
