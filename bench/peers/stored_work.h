// What a store holds after a measure, read through the engine: the proof that the work was done.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace hapax::bench {

class StoredWork {
 public:
  explicit StoredWork(const std::string& url);

  std::int64_t open();  // pending or running: one cheap query
  std::int64_t total();
  std::int64_t completed_with_result();

 private:
  std::int64_t count(bool (*wanted)(const Execution&));

  std::shared_ptr<Engine> engine_;
};

}  // namespace hapax::bench
