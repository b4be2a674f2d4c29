#include "core/hash.h"

#include <openssl/sha.h>

#include "core/hex.h"

namespace hapax {

namespace {

constexpr std::string_view kPrefix = "sha256:";

}  // namespace

Digest sha256(std::string_view bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

template <class Tag>
std::string Hash<Tag>::to_string() const {
  std::string text(kPrefix);
  text.reserve(kPrefix.size() + 2 * bytes.size());
  for (std::uint8_t byte : bytes) append_hex(text, byte);
  return text;
}

template <class Tag>
std::optional<Hash<Tag>> Hash<Tag>::parse(std::string_view text) {
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  Hash hash;
  if (text.size() != 2 * hash.bytes.size()) return {};
  for (std::size_t i = 0; i < hash.bytes.size(); ++i) {
    const auto byte = parse_hex(text[2 * i], text[2 * i + 1]);
    if (!byte) return {};
    hash.bytes[i] = *byte;
  }
  return hash;
}

template struct Hash<struct InputTag>;
template struct Hash<struct IdentityTag>;

}  // namespace hapax
