#include "config/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hapax {

namespace {

// The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before = previous;
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongestTypo = 64;
  if (word.size() > kLongestTypo) return {};
  std::optional<std::string> best;
  std::size_t best_edits = 1 + std::max<std::size_t>(1, word.size() / 3);
  for (const auto& candidate : known) {
    const std::size_t distance = edits(word, candidate);
    if (distance < best_edits) {
      best = candidate;
      best_edits = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const auto best = nearest(word, known);
  return best ? "; did you mean \"" + *best + "\"?" : "";
}

}  // namespace hapax
