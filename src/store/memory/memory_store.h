// The store in memory: the reference that the other stores are compared with, and what `memory:` opens. Written to be
// read: the rules are those of core/, the data are maps.
#pragma once

#include <memory>

#include "core/time.h"
#include "store/store.h"

namespace hapax {

// The clock must outlive the store. Nothing is durable: it ends with the process.
std::unique_ptr<Store> open_memory_store(const Clock& clock);

}  // namespace hapax
