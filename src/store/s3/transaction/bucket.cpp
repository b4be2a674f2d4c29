#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "store/call_deadline.h"
#include "store/s3/documents/names.h"
#include "store/s3/transaction/committed.h"
#include "store/s3/transaction/transaction.h"

namespace hapax::s3 {

namespace {

constexpr int kTries = 300;  // some ten seconds
constexpr std::string_view kAborted = R"({"status":"aborted"})";

// Aborted transactions are kept until no process can still try to commit one.
constexpr Duration kAbortedKept{3'600'000};

bool is_being_removed(const Grave& grave, Time now) { return grave.final && now - grave.at < kFinalTime; }

}  // namespace

void pause_before_try(int tried) {
  thread_local std::minstd_rand random(std::random_device{}());
  const int most_ms = std::min(1 << std::min(tried, 6), 40);
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<int>(200, 1000 * most_ms)(random)));
}

std::vector<PutOutcome> Bucket::put(std::span<const Put> puts) {
  if (puts.empty()) return {};
  wrote_ = true;
  return objects_.put(puts);
}

void Bucket::put_hints(const std::vector<std::string>& names) {
  std::vector<Put> puts;
  for (const std::string& name : names) puts.push_back({name, seal(""), std::nullopt});
  put(puts);
}

std::vector<UsedQueue> QueueMarks::missing(const std::set<UsedQueue>& queues) {
  std::vector<UsedQueue> missing;
  const std::lock_guard lock(mutex_);
  std::set_difference(queues.begin(), queues.end(), marked_.begin(), marked_.end(), std::back_inserter(missing));
  return missing;
}

void QueueMarks::forget() {
  const std::lock_guard lock(mutex_);
  marked_.clear();
}

void QueueMarks::add(const std::vector<UsedQueue>& queues) {
  const std::lock_guard lock(mutex_);
  marked_.insert(queues.begin(), queues.end());
}

void Bucket::mark_used(const std::set<UsedQueue>& queues) {
  const std::vector<UsedQueue> missing = marks_ ? marks_->missing(queues) : std::vector<UsedQueue>();
  if (missing.empty()) return;
  std::vector<std::string> names;
  for (const UsedQueue& queue : missing) names.push_back(used_queue_name(queue.name_space, queue.queue));
  put_hints(names);
  marks_->add(missing);
}

void Bucket::remove_leftovers(const std::vector<std::string>& names) {
  if (names.empty()) return;
  try {
    objects_.remove(names);
  } catch (const Failure&) {}
}

std::optional<Bucket::Committed> Bucket::committed(const std::string& id) {
  const auto object = objects_.get(transaction_name(id));
  if (!object) return std::nullopt;
  return Committed{read_committed(unseal(object->name, object->body).content)};
}

std::vector<Found> Bucket::look(std::span<const std::string> names) {
  std::vector<Found> found(names.size());
  const auto objects = objects_.get(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!objects[i]) continue;
    Envelope envelope = unseal(names[i], objects[i]->body);
    found[i].etag = objects[i]->etag;
    if (envelope.lock) {
      const auto transaction = committed(envelope.lock->transaction);
      if (transaction && transaction->document.committed) {
        for (const WrittenObject& write : transaction->document.writes) {
          if (write.name == names[i]) envelope.content = write.content;
        }
      } else if (!transaction) {
        // Committed and applied since, or not committed yet: only the current object tells.
        const auto again = objects_.get(names[i]);
        if (!again || again->etag != objects[i]->etag) {
          found[i] = look(names.subspan(i, 1)).front();
          continue;
        }
      }
    }
    found[i].grave = read_grave(envelope.content);
    if (!found[i].grave) found[i].content = std::move(envelope.content);
  }
  return found;
}

std::vector<Found> Bucket::look_at_each(std::span<const std::string> names) {
  try {
    return look(names);
  } catch (const Failure& failure) {
    if (failure.code() != Failure::Code::corrupt) throw;
  }
  std::vector<Found> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    try {
      found.push_back(look(names.subspan(i, 1)).front());
    } catch (const Failure& failure) {
      if (failure.code() != Failure::Code::corrupt) throw;
      found.emplace_back().damage = failure.what();
    }
  }
  return found;
}

std::vector<Found> Bucket::take(std::span<const std::string> names) {
  std::vector<Found> found(names.size());
  std::vector<std::size_t> open(names.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  std::string obstacle;
  for (int tried = 0; tried < kTries && (tried == 0 || !CallDeadline::is_over()); ++tried) {
    std::vector<std::string> wanted;
    for (const std::size_t i : open) wanted.push_back(names[i]);
    const auto objects = objects_.get(wanted);
    std::vector<std::size_t> left;
    bool moved = false;
    for (std::size_t n = 0; n < open.size(); ++n) {
      Found& one = found[open[n]];
      one = {};
      if (!objects[n]) continue;
      Envelope envelope = unseal(wanted[n], objects[n]->body);
      if (envelope.lock) {
        moved = settle(wanted[n], *objects[n], envelope) || moved;
        left.push_back(open[n]);
        obstacle = wanted[n] + " is locked by the transaction " + envelope.lock->transaction;
        continue;
      }
      one.etag = objects[n]->etag;
      one.grave = read_grave(envelope.content);
      if (one.grave && is_being_removed(*one.grave, now())) {
        left.push_back(open[n]);
        obstacle = wanted[n] + " is being removed";
        continue;
      }
      if (!one.grave) one.content = std::move(envelope.content);
    }
    if (left.empty()) return found;
    if (moved) {  // what was finished may have changed any of them
      left.resize(names.size());
      std::iota(left.begin(), left.end(), std::size_t{0});
    } else {
      pause_before_try(tried);
    }
    open = std::move(left);
  }
  throw Failure(Failure::Code::unavailable, fmt::format("waited in vain: {}; try again", obstacle));
}

// True if something was done about the lock; false: it is worth waiting.
bool Bucket::settle(const std::string& name, const Object& object, const Envelope& envelope) {
  const Lock& lock = *envelope.lock;
  auto transaction = committed(lock.transaction);
  if (!transaction) {
    if (now() < lock.until) return false;
    put(Put{transaction_name(lock.transaction), seal(kAborted), std::nullopt});
    transaction = committed(lock.transaction);
    if (!transaction) return true;  // it was applied and removed since
  }
  if (transaction->document.committed) {
    apply(lock.transaction, *transaction, {});
  } else {
    unlock(name, object.etag, envelope.content);
  }
  return true;
}

void Bucket::unlock(const std::string& name, const Etag& etag, const std::string& content) {
  if (!content.empty()) {
    put(Put{name, seal(content), etag});
    return;
  }
  Grave grave;
  grave.at = now();
  grave.keep_until = grave.at + kGraveTime;
  put_hints({end_hint(End::grave, grave.keep_until, name)});
  put(Put{name, seal(write(grave)), etag});
}

// Idempotent: each object is written only while it has this transaction's lock. New objects come first, so that a
// reader that sees one of the others without its lock also sees them.
void Bucket::apply(const std::string& id, const Committed& transaction, std::map<std::string, Etag> locked) {
  const auto started = std::chrono::steady_clock::now();
  if (locked.empty()) {
    std::vector<std::string> names;
    for (const WrittenObject& write : transaction.document.writes) names.push_back(write.name);
    const auto objects = objects_.get(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!objects[i]) continue;
      const Envelope envelope = unseal(names[i], objects[i]->body);
      if (envelope.lock && envelope.lock->transaction == id) locked[names[i]] = objects[i]->etag;
    }
  }
  std::vector<Put> creations, puts;
  std::vector<std::string> leftovers = transaction.document.dropped;
  std::set<std::string> removable;
  for (const WrittenObject& write : transaction.document.writes) {
    const auto lock = locked.find(write.name);
    if (write.created) creations.push_back({write.name, seal(write.content), write.replaces});
    if (write.created || lock == locked.end()) continue;
    std::string content = write.content;
    if (auto grave = read_grave(content); grave && grave->final) {
      grave->at = now();
      content = s3::write(*grave);
      leftovers.push_back(end_hint(End::grave, grave->keep_until, write.name));
      removable.insert(write.name);
    }
    puts.push_back({write.name, seal(content), lock->second});
  }
  put(creations);
  if (std::chrono::steady_clock::now() - started > kLateness) return;  // another process does it
  const auto outcomes = put(puts);
  std::vector<std::string> removed;
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (removable.contains(puts[i].name) && outcomes[i].written) removed.push_back(puts[i].name);
  }
  const bool in_time = std::chrono::steady_clock::now() - started < kLateness;
  if (in_time) remove_leftovers(removed);  // otherwise the purge finds them
  if (!in_time) leftovers = transaction.document.dropped;
  leftovers.push_back(transaction_name(id));
  remove_leftovers(leftovers);
}

std::optional<std::string> Bucket::find_record(const IdentityHash& hash) {
  std::vector<std::string> names;
  std::string after;
  for (;;) {
    const Listing listing = list(std::string(kRecords), after, 1);
    if (listing.objects.empty()) break;
    const std::string& first = listing.objects.front().name;
    const std::string folder = first.substr(kRecords.size(), first.rfind('/') - kRecords.size());
    names.push_back(record_name_in(folder, hash));
    after = fmt::format("{}{}/~", kRecords, folder);
  }
  const std::vector<Found> found = look(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found[i].exists()) return names[i];
  }
  return std::nullopt;
}

bool Bucket::finish_transactions() {
  bool applied = false;
  std::vector<std::string> forgotten;
  for (const Listed& listed : list(std::string(kTransactions)).objects) {
    const Duration age = now() - listed.modified_at;
    if (age < kLockTime) continue;
    const std::string id = listed.name.substr(kTransactions.size());
    const auto transaction = committed(id);
    if (!transaction) continue;
    if (transaction->document.committed) {
      apply(id, *transaction, {});
      applied = true;
    } else if (age >= kAbortedKept) {
      forgotten.push_back(listed.name);
    }
  }
  remove_leftovers(forgotten);
  return applied;
}

}  // namespace hapax::s3
