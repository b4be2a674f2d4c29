// Runs independent items of a batch concurrently: each request to a bucket takes long, and many may be in flight.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "store/call_deadline.h"

namespace hapax::s3 {

// Calls work(i) for each i below `count`, on up to `threads` threads. Those with equal keys are done one after the
// other, in order. Once one throws, no other is begun, and it is thrown to the caller.
template <class KeyOf, class Work>
void for_each_in_flight(std::size_t count, std::size_t threads, KeyOf key_of, Work work) {
  using Key = std::decay_t<decltype(key_of(std::size_t{}))>;
  if (count <= 1 || threads <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::map<Key, std::size_t> groups;
  std::vector<std::vector<std::size_t>> items;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [group, is_new] = groups.emplace(key_of(i), items.size());
    if (is_new) items.emplace_back();
    items[group->second].push_back(i);
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto until = CallDeadline::current();
  const auto run = [&] {
    const CallDeadline deadline(until);
    for (std::size_t group = next++; group < items.size(); group = next++) {
      for (const std::size_t i : items[group]) {
        if (failed) return;
        try {
          work(i);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
          failed = true;
        }
      }
    }
  };
  std::vector<std::thread> others;
  for (std::size_t n = 1; n < std::min(threads, items.size()); ++n) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hapax::s3
