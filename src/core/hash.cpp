#include "core/hash.h"

#include <openssl/evp.h>

#include <memory>

#include "core/failure.h"
#include "core/hex.h"

namespace hapax {

namespace {

constexpr std::string_view kPrefix = "sha256:";

}  // namespace

Digest sha256(std::string_view bytes) {
  static const EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);  // looked up once, not for each hash
  thread_local const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  Digest digest;
  if (EVP_DigestInit_ex2(context.get(), kSha256, nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) {
    throw Failure(Failure::Code::unavailable, "OpenSSL makes no SHA-256 here");
  }
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
