// The fields of core/fields.h as the columns of a table: a group is spread over columns "group_part", and one that may
// be absent is NULL in all of them.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/fields.h"

namespace hapax {

template <class Value>
struct Optional : std::false_type {
  using Held = Value;
};
template <class Value>
struct Optional<std::optional<Value>> : std::true_type {
  using Held = Value;
};

template <class Value>
constexpr bool kIsList = false;
template <class Item>
constexpr bool kIsList<std::vector<Item>> = true;

// Calls visit(name, std::type_identity<Value>{}, nullable) for each column of a field of that type.
template <class Value, class Visit>
void spread(const std::string& name, bool nullable, Visit&& visit) {
  using Held = typename Optional<Value>::Held;
  nullable = nullable || Optional<Value>::value;
  if constexpr (Described<Held>) {
    Held group{};
    fields([&]<class Part>(const Field& part,
                           const Part&) { spread<Part>(name + "_" + std::string(part.name), nullable, visit); },
           group);
  } else {
    visit(name, std::type_identity<Held>{}, nullable);
  }
}

// Calls `act` once for each column of a field of that type, without making their names.
template <class Value, class Act>
void each_column(const Act& act) {
  using Held = typename Optional<Value>::Held;
  if constexpr (Described<Held>) {
    static const Held group{};
    fields([&]<class Part>(const Field&, const Part&) { each_column<Part>(act); }, group);
  } else {
    act();
  }
}

// spread() for every field that `list` visits in an execution: [](auto&& visit, auto& e) { state_fields(visit, e); }.
template <class List, class Visit>
void spread_all(List list, Visit&& visit) {
  const Execution any;
  list([&]<class Value>(const Field& field, const Value&) { spread<Value>(std::string(field.name), false, visit); },
       any);
}

}  // namespace hapax
