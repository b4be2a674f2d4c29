#include "conformance/s3_home.h"

#include "store/s3/memory_objects.h"
#include "store/s3/s3_store.h"

namespace hapax {

namespace {

class S3Home final : public StoreHome {
 public:
  std::unique_ptr<Store> open(const Clock& clock) override {
    if (!objects_) objects_ = std::make_shared<MemoryObjects>(clock);
    S3StoreOptions options;
    options.pulse = std::chrono::milliseconds(20);
    options.in_flight = 1;  // the order of events over several items is compared
    return open_s3_store(objects_, options);
  }

  bool change_payloads(const std::string& from, const std::string& to) override {
    for (const std::string& name : objects_->names("tasks/")) {
      auto object = objects_->get(name);
      const std::size_t at = object ? object->body.find(from) : std::string::npos;
      if (at == std::string::npos) continue;
      object->body.replace(at, from.size(), to);
      objects_->put(Put{name, object->body, object->etag});
    }
    return true;
  }

 private:
  std::shared_ptr<MemoryObjects> objects_;
};

}  // namespace

std::unique_ptr<StoreHome> make_s3_home() { return std::make_unique<S3Home>(); }

}  // namespace hapax
