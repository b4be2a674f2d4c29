#include "capi/handles.h"

#include <pthread.h>

#include <atomic>

namespace hapax::capi {

namespace {

constexpr unsigned kKindBits = 4, kSequenceBits = 44, kGenerationBits = 16;
static_assert(kKindBits + kSequenceBits + kGenerationBits == 64 && sizeof(std::uintptr_t) == sizeof(std::uint64_t));

constexpr std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

std::atomic<std::uint64_t> forks{0};

const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t fork_generation() {
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

std::uintptr_t make_handle(HandleKind kind, std::uint64_t sequence) {
  const std::uint64_t generation = fork_generation() & mask(kGenerationBits);
  return generation << (kSequenceBits + kKindBits) | (sequence & mask(kSequenceBits)) << kKindBits |
         static_cast<std::uintptr_t>(kind);
}

Trouble examine_handle(std::uintptr_t handle, HandleKind kind, std::uint64_t& sequence) {
  sequence = handle >> kKindBits & mask(kSequenceBits);
  if ((handle & mask(kKindBits)) != static_cast<std::uintptr_t>(kind) || sequence == 0) return Trouble::invalid;
  const std::uint64_t generation = fork_generation() & mask(kGenerationBits);
  const std::uint64_t of_handle = handle >> (kSequenceBits + kKindBits);
  if (of_handle > generation) return Trouble::invalid;
  return of_handle < generation ? Trouble::forked : Trouble::none;
}

}  // namespace hapax::capi
