#include "store/cache/cached_identity.h"

#include "store/packed_fields.h"

namespace hapax {

namespace {

constexpr std::string_view kVersion = "hapax/3";
constexpr std::size_t kChecksumBytes = 16;

std::string checksum(std::string_view text) {
  const Digest digest = sha256(text);
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

}  // namespace

std::string cache_key(const IdentityHash& hash, const std::string& store_identity) {
  const std::string key = std::string(kVersion) + ":" + hash.to_string().substr(7);
  return store_identity.empty() ? key : key + ":" + store_identity;
}

std::string write_cached(const CachedIdentity& identity) {
  FieldPacker writer;
  writer.write(identity.entry);
  writer.write(identity.owner);
  std::string text = std::string(kVersion) + writer.take();
  return text + checksum(text);
}

std::optional<CachedIdentity> read_cached(std::string_view text, const IdentityHash& hash) {
  if (text.size() < kVersion.size() + kChecksumBytes || !text.starts_with(kVersion)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kChecksumBytes);
  if (checksum(body) != text.substr(body.size())) return std::nullopt;
  FieldUnpacker reader(body.substr(kVersion.size()));
  CachedIdentity cached;
  reader.read(cached.entry);
  reader.read(cached.owner);
  if (!reader.ended_well() || cached.entry.identity.hash != hash) return std::nullopt;
  if (cached.owner.status != Status::completed || !cached.owner.finished_at) return std::nullopt;
  if (cached.entry.owner != cached.owner.id || cached.entry.name_space != cached.owner.name_space) return std::nullopt;
  return cached;
}

}  // namespace hapax
