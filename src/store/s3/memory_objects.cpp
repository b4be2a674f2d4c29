#include "store/s3/memory_objects.h"

#include <algorithm>

namespace hapax {

using Verb = ObjectRequest::Verb;

void MemoryObjects::on_requests(Hook before, Hook after) {
  before_ = std::move(before);
  after_ = std::move(after);
}

std::map<Verb, int> MemoryObjects::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void MemoryObjects::reset_counts() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

std::vector<std::string> MemoryObjects::names(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (auto object = objects_.lower_bound(prefix); object != objects_.end(); ++object) {
    if (!object->first.starts_with(prefix)) break;
    names.push_back(object->first);
  }
  return names;
}

template <class Answer>
auto MemoryObjects::request(Verb verb, const std::string& name, Answer answer) {
  const ObjectRequest request{verb, name};
  if (before_) before_(request);
  auto result = [&] {
    const std::lock_guard lock(mutex_);
    ++counts_[verb];
    return answer();
  }();
  if (after_) after_(request);
  return result;
}

std::vector<std::optional<Object>> MemoryObjects::get(std::span<const std::string> names) {
  std::vector<std::optional<Object>> objects;
  objects.reserve(names.size());
  for (const std::string& name : names) {
    objects.push_back(request(Verb::get, name, [&]() -> std::optional<Object> {
      const auto found = objects_.find(name);
      if (found == objects_.end()) return std::nullopt;
      return Object{name, found->second.body, found->second.etag};
    }));
  }
  return objects;
}

bool MemoryObjects::condition_holds(const Put& put) const {
  const auto found = objects_.find(put.name);
  const bool there = found != objects_.end();
  return put.replaces ? there && found->second.etag == *put.replaces : !there;
}

PutOutcome MemoryObjects::write(const Put& put) {
  Etag etag = "v" + std::to_string(++versions_);
  objects_.insert_or_assign(put.name, Stored{put.body, etag, clock_.now()});
  return {true, std::move(etag)};
}

std::vector<PutOutcome> MemoryObjects::put(std::span<const Put> puts) {
  std::vector<bool> held_before;
  if (!conditions_hold_) {
    const std::lock_guard lock(mutex_);
    for (const Put& put : puts) held_before.push_back(condition_holds(put));
  }
  std::vector<PutOutcome> outcomes;
  outcomes.reserve(puts.size());
  for (std::size_t i = 0; i < puts.size(); ++i) {
    outcomes.push_back(request(Verb::put, puts[i].name, [&] {
      return (conditions_hold_ ? condition_holds(puts[i]) : held_before[i]) ? write(puts[i]) : PutOutcome();
    }));
  }
  return outcomes;
}

void MemoryObjects::remove(std::span<const std::string> names) {
  for (const std::string& name : names) {
    request(Verb::remove, name, [&] { return objects_.erase(name); });
  }
}

Listing MemoryObjects::list(const std::string& prefix, const std::string& after, std::int32_t limit) {
  return request(Verb::list, prefix, [&] {
    Listing listing;
    auto object = after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
    for (; object != objects_.end() && object->first.starts_with(prefix); ++object) {
      if (std::ssize(listing.objects) >= limit) {
        listing.more = true;
        break;
      }
      listing.objects.push_back({object->first, object->second.modified_at});
    }
    return listing;
  });
}

}  // namespace hapax
