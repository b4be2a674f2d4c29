#include "store/s3/transaction/transaction.h"

#include <algorithm>

#include "store/s3/documents/archive.h"
#include "store/s3/documents/names.h"
#include "store/s3/transaction/committed.h"

namespace hapax::s3 {

template <class Archive>
void fields(Archive& archive, WrittenObject& write) {
  archive("name", write.name);
  archive("content", write.content);
  archive("created", write.created);
  archive("replaces", write.replaces);
}

template <class Archive>
void fields(Archive& archive, CommittedDocument& document) {
  std::string status = document.committed ? "committed" : "aborted";
  archive("status", status);
  archive("writes", document.writes);
  archive("dropped", document.dropped);
  document.committed = status == "committed";
}

std::string write(const CommittedDocument& document) { return Writer::text(document); }
CommittedDocument read_committed(std::string_view content) { return Reader::object<CommittedDocument>(content); }

const Found& Transaction::read(const std::string& name) {
  const auto known = found_.find(name);
  if (known != found_.end()) return known->second;
  return found_.emplace(name, bucket_.take({&name, 1}).front()).first->second;
}

void Transaction::prefetch(std::span<const std::string> names) {
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    if (!found_.contains(name)) unknown.push_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  auto found = bucket_.take(unknown);
  for (std::size_t i = 0; i < unknown.size(); ++i) found_.emplace(unknown[i], std::move(found[i]));
}

void Transaction::write(const std::string& name, std::string content) {
  read(name);
  writes_[name] = {std::move(content), false};
}

void Transaction::create(const std::string& name, std::string content) {
  read(name);
  writes_[name] = {std::move(content), true};
}

bool Transaction::commit() {
  if (writes_.empty()) return true;
  std::vector<std::string> only_read;
  for (const auto& [name, found] : found_) {
    if (!writes_.contains(name)) only_read.push_back(name);
  }
  return writes_.size() == 1 && only_read.empty() ? commit_one() : commit_all(only_read);
}

// What a final grave leaves to be done.
void Transaction::clear_away(const std::string& name, const std::string& content) {
  const auto grave = read_grave(content);
  if (!grave || !grave->final || late()) return;
  bucket_.remove_leftovers({name});
  bucket_.remove_leftovers({end_hint(End::grave, grave->keep_until, name)});
}

bool Transaction::commit_one() {
  const auto& [name, write] = *writes_.begin();
  bucket_.put_hints(hints_);
  if (late() || !bucket_.put(Put{name, seal(write.content), found_.at(name).etag})) {
    bucket_.remove_leftovers(hints_);
    return false;
  }
  bucket_.remove_leftovers(dropped_);
  clear_away(name, write.content);
  return true;
}

bool Transaction::commit_record_and_task(const std::string& record, const std::string& task) {
  if (late() || !bucket_.put(Put{record, seal(writes_.at(record).content), found_.at(record).etag})) return false;
  bucket_.put_hints(hints_);
  if (late()) return false;
  bucket_.put(Put{task, seal(writes_.at(task).content), found_.at(task).etag});
  bucket_.remove_leftovers(dropped_);
  return true;
}

std::optional<std::map<std::string, Etag>> Transaction::lock(const Lock& lock) {
  std::vector<Put> puts;
  for (const auto& [name, write] : writes_) {
    if (write.created) continue;
    const Found& found = found_.at(name);
    const std::string& content = found.grave ? s3::write(*found.grave) : found.content;
    puts.push_back({name, seal(content, lock), found.etag});
  }
  const auto outcomes = bucket_.put(puts);
  std::map<std::string, Etag> locked;
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (outcomes[i].written) locked[puts[i].name] = outcomes[i].etag;
  }
  if (locked.size() == puts.size()) return locked;
  release(locked);
  return std::nullopt;
}

bool Transaction::still_the_same(const std::vector<std::string>& names) {
  if (names.empty()) return true;
  const auto objects = bucket_.objects_.get(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<Etag>& before = found_.at(names[i]).etag;
    if (objects[i] ? before != objects[i]->etag : before.has_value()) return false;
  }
  return true;
}

void Transaction::release(const std::map<std::string, Etag>& locked) {
  for (const auto& [name, etag] : locked) {
    const Found& found = found_.at(name);
    bucket_.unlock(name, etag, found.grave ? s3::write(*found.grave) : found.content);
  }
}

bool Transaction::commit_all(const std::vector<std::string>& only_read) {
  const std::string id = random_token();
  const Lock lock{id, bucket_.now() + kLockTime};
  bucket_.put_hints(hints_);
  const auto locked = this->lock(lock);
  if (!locked) {
    bucket_.remove_leftovers(hints_);
    return false;
  }
  Bucket::Committed transaction;
  transaction.document.committed = true;
  transaction.document.dropped = dropped_;
  for (const auto& [name, write] : writes_) {
    const std::optional<Etag> replaces = write.created ? found_.at(name).etag : std::nullopt;
    transaction.document.writes.push_back({name, write.content, write.created, replaces});
  }
  const bool stands = [&] {
    try {
      return !late() && still_the_same(only_read) && bucket_.now() < lock.until;
    } catch (const Failure&) {
      release(*locked);  // rather than let others wait for its end
      throw;
    }
  }();
  if (!stands || !bucket_.put(Put{transaction_name(id), seal(s3::write(transaction.document)), std::nullopt})) {
    release(*locked);
    bucket_.remove_leftovers(hints_);
    return false;
  }
  try {
    bucket_.apply(id, transaction, *locked);
  } catch (const Failure&) {
    // It is committed: any process that meets one of its locks applies the rest.
  }
  return true;
}

}  // namespace hapax::s3
