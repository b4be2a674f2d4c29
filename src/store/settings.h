// Settings of queues and types that were put over the API. Part of Store: see store.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hapax {

// A queue's or type's settings as a client put them over the API: a JSON object that the store does not look into.
struct SettingDocument {
  enum class Kind : std::uint8_t { queue, type };

  std::string name_space;
  Kind kind = Kind::queue;
  std::string name;
  std::string document;

  bool operator==(const SettingDocument&) const = default;
};

class StoreSettings {
 public:
  virtual ~StoreSettings() = default;

  virtual std::vector<SettingDocument> settings() = 0;
  virtual void put_setting(const SettingDocument& setting) = 0;
};

}  // namespace hapax
