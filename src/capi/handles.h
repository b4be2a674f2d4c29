// Handles that a C program holds: numbers in the shape of pointers. A number is never used twice, so a wrong one is
// recognised, whatever the program does with it.
//
// After fork() nothing of the parent is touched: not even its locks, which another thread may have held.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace hapax::capi {

enum class Trouble : std::uint8_t { none, invalid, closed, forked };

enum class HandleKind : std::uintptr_t { app = 1, queue = 2, worker = 3 };

// The number of forks between the process that loaded the library and this one.
std::uint64_t fork_generation();

// The generation, sequence number and kind of a handle, as one number.
std::uintptr_t make_handle(HandleKind kind, std::uint64_t sequence);

// What can be told of a handle without a lock. `none`: look it up; `sequence` is set.
Trouble examine_handle(std::uintptr_t handle, HandleKind kind, std::uint64_t& sequence);

// All handles of one kind. Safe to use from any thread.
template <class T>
class Handles {
 public:
  explicit Handles(HandleKind kind) : kind_(kind) {}

  std::uintptr_t add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return make_handle(kind_, last_);
  }

  // Null, and why.
  std::pair<std::shared_ptr<T>, Trouble> find(std::uintptr_t handle) const {
    std::uint64_t sequence = 0;
    if (const Trouble trouble = examine_handle(handle, kind_, sequence); trouble != Trouble::none) {
      return {nullptr, trouble};
    }
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(sequence);
    if (found != objects_.end()) return {found->second, Trouble::none};
    return {nullptr, sequence <= last_ ? Trouble::closed : Trouble::invalid};
  }

  std::shared_ptr<T> remove(std::uintptr_t handle) {
    std::uint64_t sequence = 0;
    if (examine_handle(handle, kind_, sequence) != Trouble::none) return nullptr;
    const std::lock_guard lock(mutex_);
    auto node = objects_.extract(sequence);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

 private:
  const HandleKind kind_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<T>> objects_;
  std::uint64_t last_ = 0;
};

}  // namespace hapax::capi
