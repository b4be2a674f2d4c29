#include "model/comparison.h"

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "model/oracle/oracle.h"
#include "support/manual_clock.h"

namespace hapax::model {

namespace {

using Fails = std::function<bool(const Sequence&)>;

template <class Items>
Items without(const Items& items, std::size_t from, std::size_t count) {
  Items rest(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(from));
  rest.insert(rest.end(), items.begin() + static_cast<std::ptrdiff_t>(std::min(from + count, items.size())),
              items.end());
  return rest;
}

// Leaves out ever smaller runs of items for as long as it still fails.
template <class Items, class StillFails>
Items shrink(Items items, StillFails still_fails) {
  for (std::size_t chunk = std::max<std::size_t>(items.size() / 2, 1);; chunk = std::max<std::size_t>(chunk / 2, 1)) {
    bool shrunk = false;
    for (std::size_t from = 0; from < items.size();) {
      Items fewer = without(items, from, chunk);
      if (still_fails(fewer)) {
        items = std::move(fewer);
        shrunk = true;
      } else {
        from += chunk;
      }
    }
    if (chunk == 1 && !shrunk) return items;
  }
}

Sequence shrink_batches(Sequence sequence, const Fails& fails) {
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    sequence[i] = std::visit(
        [&]<class Content>(const Content& content) -> Step {
          if constexpr (requires { content.begin(); }) {
            return shrink(content, [&](const Content& fewer) {
              Sequence candidate = sequence;
              candidate[i] = fewer;
              return !fewer.empty() && fails(candidate);
            });
          } else if constexpr (std::is_same_v<Content, Policies>) {
            return Policies{shrink(content.queues, [&](const auto& fewer) {
              Sequence candidate = sequence;
              candidate[i] = Policies{fewer};
              return fails(candidate);
            })};
          } else {
            return content;
          }
        },
        Step(sequence[i]));
  }
  return sequence;
}

}  // namespace

std::optional<Difference> compare(const Sequence& sequence, const MakeHome& store) {
  ManualClock clock;
  Oracle oracle;
  const auto home = store();
  const auto opened = home->open(clock);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (const auto* advance = std::get_if<Advance>(&sequence[i])) clock.advance(advance->by);
    const Answer expected = in_order(oracle.perform(sequence[i], clock.now()));
    const Answer actual = in_order(perform(sequence[i], *opened));
    if (expected != actual) return Difference{i, describe_difference(expected, actual)};
  }
  return std::nullopt;
}

Sequence minimise(Sequence sequence, const MakeHome& store) {
  const Fails fails = [&](const Sequence& candidate) { return compare(candidate, store).has_value(); };
  if (const auto difference = compare(sequence, store)) sequence.resize(difference->step + 1);
  sequence = shrink(std::move(sequence), fails);
  sequence = shrink_batches(std::move(sequence), fails);
  return shrink(std::move(sequence), fails);
}

std::string describe_failure(const Sequence& sequence, const MakeHome& store) {
  std::ostringstream out;
  for (std::size_t i = 0; i < sequence.size(); ++i) out << "  " << i << ". " << sequence[i] << '\n';
  const auto difference = compare(sequence, store);
  if (difference) out << "they differ at step " << difference->step << ":\n" << difference->text;
  return out.str();
}

}  // namespace hapax::model
