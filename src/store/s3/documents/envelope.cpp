#include "store/s3/documents/envelope.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "core/checksum.h"
#include "core/failure.h"
#include "core/hex.h"
#include "core/id.h"

namespace hapax::s3 {

namespace {

constexpr std::string_view kWriter = R"({"writer":")";
constexpr std::string_view kLock = R"("lock":{"transaction":")";
constexpr std::string_view kUntil = R"(","until_ms":)";
constexpr std::size_t kToken = 32;
constexpr std::string_view kSum = R"(,"sum":")";  // CRC-32C of the content, as eight hexadecimal digits
constexpr std::size_t kSumDigits = 8;

[[noreturn]] void corrupt(std::string_view name) {
  throw Failure(
      Failure::Code::corrupt,
      fmt::format("the object {} was not written by this program: remove it, or restore an earlier version of it",
                  name));
}

[[noreturn]] void damaged(std::string_view name) {
  throw Failure(Failure::Code::corrupt,
                fmt::format("the object {} does not match its checksum: restore an earlier version of it", name));
}

// Takes the checksum off the front of what follows the writer's token; an earlier version wrote none.
std::optional<std::string> take_sum(std::string_view& body) {
  if (!body.starts_with(kSum) || body.size() <= kSum.size() + kSumDigits) return std::nullopt;
  std::string sum(body.substr(kSum.size(), kSumDigits));
  body.remove_prefix(kSum.size() + kSumDigits + 1);
  return sum;
}

std::string sum_of(std::string_view content) { return fmt::format("{:08x}", crc32c(content)); }

}  // namespace

std::string random_token() {
  std::array<std::uint8_t, kToken / 2> random;
  fill_random(random.data(), random.size());
  std::string token;
  for (const std::uint8_t byte : random) append_hex(token, byte);
  return token;
}

std::string seal(std::string_view content, const std::optional<Lock>& lock) {
  std::string body(kWriter);
  body += random_token();
  body += '"';
  if (content.size() > 2) body += fmt::format("{}{}\"", kSum, sum_of(content));
  if (lock) body += fmt::format(",{}{}{}{}}}", kLock, lock->transaction, kUntil, to_ms(lock->until));
  if (content.size() > 2) {
    body += ',';
    body += content.substr(1);
  } else {
    body += '}';
  }
  return body;
}

// The members that are not the content's come first, in this form only: no need to read the whole of it as JSON.
Envelope unseal(std::string_view name, std::string_view body) {
  if (!body.starts_with(kWriter) || body.size() < kWriter.size() + kToken + 2) corrupt(name);
  body.remove_prefix(kWriter.size() + kToken + 1);
  Envelope envelope;
  const auto sum = take_sum(body);
  if (body.substr(1).starts_with(kLock)) {
    body.remove_prefix(1 + kLock.size());
    Lock& lock = envelope.lock.emplace();
    lock.transaction = body.substr(0, kToken);
    if (body.size() < kToken || !body.substr(kToken).starts_with(kUntil)) corrupt(name);
    body.remove_prefix(kToken + kUntil.size());
    std::int64_t until = 0;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), until);
    if (error != std::errc() || end == body.data() + body.size() || *end != '}') corrupt(name);
    lock.until = from_ms(until);
    body.remove_prefix(static_cast<std::size_t>(end - body.data()) + 1);
  }
  if (body == "}") return envelope;
  if (!body.starts_with(',')) corrupt(name);
  envelope.content = "{";
  envelope.content += body.substr(1);
  if (sum && *sum != sum_of(envelope.content)) damaged(name);
  return envelope;
}

}  // namespace hapax::s3
