// Included into every source of the kernel that bugs are planted in: see plant_bugs.py.
#pragma once

#include <stdexcept>

namespace hapax::model {

extern int planted;

inline void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

}  // namespace hapax::model

#define PLANTED_ASSERT(condition) ::hapax::model::expect((condition), #condition)
