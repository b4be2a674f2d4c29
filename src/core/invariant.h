// What must hold wherever the code is right, checked in every build. docs/adr/0017 says why.
#pragma once

#include <source_location>

namespace hapax {

[[noreturn]] void broken_invariant(const char* sentence, const std::source_location& where);

// Throws Failure::corrupt unless it holds, so the transaction that would have stored the result is rolled back. Only
// for bugs of ours: what a caller can get wrong has its own check and answer. The sentence says what holds.
inline void invariant(bool holds, const char* sentence,
                      const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    broken_invariant(sentence, where);
}

}  // namespace hapax
