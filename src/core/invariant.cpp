#include "core/invariant.h"

#include <fmt/format.h>

#include "core/failure.h"

namespace hapax {

void broken_invariant(const char* sentence, const std::source_location& where) {
  throw Failure(Failure::Code::corrupt,
                fmt::format("a bug in Hapax, please report it: {} ({}:{})", sentence, where.file_name(), where.line()));
}

}  // namespace hapax
