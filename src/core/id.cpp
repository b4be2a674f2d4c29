#include "core/id.h"

#include <openssl/rand.h>
#include <unistd.h>

#include <cstring>

#include "core/failure.h"
#include "core/hex.h"

namespace hapax {

namespace {

constexpr bool is_dash(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

// The random bytes of one id. Drawn ahead for 64 ids, which costs no more than for one; a fork shares none with its
// parent.
std::array<std::uint8_t, 10> random_for_id() {
  std::array<std::uint8_t, 10> random;
  thread_local std::array<std::uint8_t, 64 * sizeof random> drawn;
  thread_local std::size_t left = 0;
  thread_local pid_t drawn_by = 0;
  if (left == 0 || drawn_by != getpid()) {
    fill_random(drawn.data(), drawn.size());
    left = drawn.size();
    drawn_by = getpid();
  }
  left -= random.size();
  std::memcpy(random.data(), drawn.data() + left, random.size());
  return random;
}

}  // namespace

std::string ExecutionId::to_string() const {
  std::string text;
  text.reserve(36);
  for (std::uint8_t byte : bytes) {
    if (is_dash(text.size())) text += '-';
    append_hex(text, byte);
  }
  return text;
}

std::optional<ExecutionId> ExecutionId::parse(std::string_view text) {
  if (text.size() != 36) return {};
  ExecutionId id;
  std::size_t at = 0;
  for (std::uint8_t& byte : id.bytes) {
    if (is_dash(at) && text[at++] != '-') return {};
    const auto value = parse_hex(text[at], text[at + 1]);
    if (!value) return {};
    byte = *value;
    at += 2;
  }
  return id;
}

void fill_random(void* data, std::size_t size) {
  if (RAND_bytes(static_cast<unsigned char*>(data), static_cast<int>(size)) != 1) {
    throw Failure(Failure::Code::unavailable, "the operating system gives no random numbers");
  }
}

bool ExecutionId::is_v7() const { return bytes[6] >> 4 == 7 && bytes[8] >> 6 == 2; }

Time ExecutionId::drawn_at() const {
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8 | bytes[i];
  return from_ms(ms);
}

// Layout: 48 bits of milliseconds, version 7, 12 + 14 bits of a counter that starts at random below half its range in
// each millisecond, 48 random bits. A counter that overflows borrows the next millisecond.
ExecutionId IdGenerator::next(Time now) {
  constexpr std::uint32_t kCounterBits = 26;
  const auto random = random_for_id();

  std::int64_t ms;
  std::uint32_t counter;
  {
    std::lock_guard lock(mutex_);
    if (to_ms(now) > last_ms_) {
      last_ms_ = to_ms(now);
      std::memcpy(&counter_, random.data() + 6, sizeof counter_);
      counter_ &= (1u << (kCounterBits - 1)) - 1;
    } else if (++counter_ == 1u << kCounterBits) {
      ++last_ms_;
      counter_ = 0;
    }
    ms = last_ms_;
    counter = counter_;
  }

  ExecutionId id;
  for (int i = 0; i < 6; ++i) id.bytes[std::size_t(i)] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
  id.bytes[6] = static_cast<std::uint8_t>(0x70 | counter >> 22);
  id.bytes[7] = static_cast<std::uint8_t>(counter >> 14);
  id.bytes[8] = static_cast<std::uint8_t>(0x80 | (counter >> 8 & 0x3f));
  id.bytes[9] = static_cast<std::uint8_t>(counter);
  std::memcpy(id.bytes.data() + 10, random.data(), 6);
  return id;
}

}  // namespace hapax

std::size_t std::hash<hapax::ExecutionId>::operator()(const hapax::ExecutionId& id) const noexcept {
  std::size_t value;
  std::memcpy(&value, id.bytes.data() + 8, sizeof value);
  return value;
}
