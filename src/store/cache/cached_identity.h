// What is kept in Redis of an identity whose owner is completed: its ledger entry and the owner, as one text that knows
// what it is. Whatever else is found under the key, from another program, another version or a broken memory, reads as
// nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/ledger.h"

namespace hapax {

struct CachedIdentity {
  LedgerEntry entry;
  Execution owner;

  bool operator==(const CachedIdentity&) const = default;
};

// The key in Redis. Carries the version of the text below: programs of different versions do not see each other's. And
// the identity of the store: what was true of one that has been restored since is not found.
std::string cache_key(const IdentityHash& hash, const std::string& store_identity = "");

std::string write_cached(const CachedIdentity& identity);

// Nothing unless the text is whole, of this version and about this identity.
std::optional<CachedIdentity> read_cached(std::string_view text, const IdentityHash& hash);

}  // namespace hapax
