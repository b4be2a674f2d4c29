// The bucket of an s3:// URL: conditional writes, with retries, and with lost answers settled by reading back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/failure.h"
#include "store/call_deadline.h"
#include "store/s3/client/s3_wire.h"
#include "store/s3/object_store.h"

namespace hapax {

// A request ends after this, whatever its patience: the protocol of the store relies on it (transaction.h).
inline constexpr Duration kLongestPatience{30'000};

struct S3ObjectsOptions {
  S3WireOptions wire = {};
  int tries = 1000;  // of one request, in all
  Duration patience =
      kStoreTimeout;            // then it is given up, or at the CallDeadline if that is earlier; see kLongestPatience
  Duration first_pause{50};     // before the second; doubled each time, and of that a random part
  Duration longest_pause{500};  // short: an outage is over for the caller soon after it is over
};

// How an endpoint wants the etag in If-Match. Found out by the first write that is refused although its condition
// holds.
enum class EtagForm : std::uint8_t { quoted, bare };

// An answer that no repetition makes better, as a Failure::misuse that says what to do.
Failure explain_refusal(const S3Address& address, const S3Answer& answer);

class S3Objects final : public ObjectStore {
 public:
  explicit S3Objects(S3Address address, S3ObjectsOptions options = {});
  ~S3Objects() override;

  Time now() override;
  std::vector<std::optional<Object>> get(std::span<const std::string> names) override;
  std::vector<PutOutcome> put(std::span<const Put> puts) override;
  void remove(std::span<const std::string> names) override;
  Listing list(const std::string& prefix, const std::string& after, std::int32_t limit) override;
  void interrupt() override;
  using ObjectStore::get;
  using ObjectStore::put;
  using ObjectStore::remove;

  S3Wire& wire() { return wire_; }
  RequestCounts& counts() { return wire_.counts(); }

 private:
  class Item;
  class GetItem;
  class PutItem;
  class RemoveItem;
  class ListItem;

  // Sends what each asks for, until all are settled; throws the worst failure among them.
  template <class Items>
  void run(Items& items);

  std::string key_of(const std::string& name) const { return wire_.address().prefix + name; }

  const S3ObjectsOptions options_;
  std::atomic<EtagForm> etag_form_ = EtagForm::quoted;
  std::atomic<bool> etag_form_known_ = false;
  std::atomic<bool> interrupted_ = false;
  S3Wire wire_;
};

}  // namespace hapax
