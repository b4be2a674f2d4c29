#include "store/s3/envelope.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "core/failure.h"
#include "core/hex.h"
#include "core/id.h"

namespace hapax::s3 {

namespace {

constexpr std::string_view kWriter = R"({"writer":")";
constexpr std::string_view kLock = R"("lock":{"transaction":")";
constexpr std::string_view kUntil = R"(","until_ms":)";
constexpr std::size_t kToken = 32;

[[noreturn]] void corrupt(std::string_view name) {
  throw Failure(
      Failure::Code::corrupt,
      fmt::format("the object {} was not written by this program: remove it, or restore an earlier version of it",
                  name));
}

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
  return envelope;
}

}  // namespace hapax::s3
