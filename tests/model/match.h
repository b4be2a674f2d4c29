// Visits a variant with one lambda for each of its kinds.
#pragma once

namespace hapax::model {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace hapax::model
