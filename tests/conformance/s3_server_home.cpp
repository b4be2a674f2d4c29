#include "conformance/s3_server_home.h"

#include "store/s3/client/s3_objects.h"
#include "store/s3/s3_store.h"
#include "support/clocked_objects.h"
#include "support/s3_server.h"

namespace hapax {

namespace {

class S3ServerHome final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override {
    S3StoreOptions options;
    options.pulse = std::chrono::milliseconds(20);
    options.probe = false;  // there are tests for that, and hundreds for this
    options.in_flight = 1;  // the order of events over several items is compared
    return open_s3_store(std::make_shared<ClockedObjects>(std::make_unique<S3Objects>(address_), clock, times_),
                         options);
  }

 private:
  const S3Address address_ = S3Server::shared().fresh_address();
  const std::shared_ptr<WritingTimes> times_ = std::make_shared<WritingTimes>();
};

}  // namespace

std::unique_ptr<StoreHome> make_s3_server_home() { return std::make_unique<S3ServerHome>(); }

}  // namespace hapax
