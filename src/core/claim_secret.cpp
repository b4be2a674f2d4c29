#include "core/claim_secret.h"

#include <algorithm>

#include "core/hash.h"
#include "core/json_writer.h"

namespace hapax {

LeaseSecret unmarked(LeaseSecret secret) {
  secret.bytes[0] &= 0x7f;
  return secret;
}

LeaseSecret secret_of_claim(std::string_view store_identity, std::string_view name_space, std::string_view worker,
                            std::string_view claim_id) {
  JsonWriter material;
  material.begin_array().string("hapax/claim").string(store_identity).string(name_space).string(worker);
  const Digest digest = sha256(material.string(claim_id).end_array().take());
  LeaseSecret secret;
  std::copy_n(digest.begin(), secret.bytes.size(), secret.bytes.begin());
  secret.bytes[0] |= 0x80;
  return secret;
}

}  // namespace hapax
