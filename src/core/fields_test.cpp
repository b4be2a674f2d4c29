#include "core/fields.h"

#include <gtest/gtest.h>

#include <boost/pfr.hpp>

#include "core/checksum.h"
#include "support/filled.h"

namespace hapax {
namespace {

// Every member of a struct must be in its list: one that is missing would be stored nowhere.
template <class Value>
void expect_all_listed(std::size_t not_stored = 0) {
  std::size_t listed = 0;
  Value value;
  fields([&](const Field&, auto&) { ++listed; }, value);
  EXPECT_EQ(listed + not_stored, boost::pfr::tuple_size_v<Value>);
}

TEST(Fields, ListEveryMember) {
  expect_all_listed<RetryPolicy>();
  expect_all_listed<Scope>();
  expect_all_listed<Identity>();
  expect_all_listed<AttemptError>();
  expect_all_listed<AttemptRecord>();
  expect_all_listed<CommittedTurn>();
  expect_all_listed<RunState>();
  expect_all_listed<Execution>(1);  // `damaged` is found out on reading
  expect_all_listed<Tombstone>();
  expect_all_listed<LedgerEntry>();
  expect_all_listed<Event>(1);
}

TEST(Fields, HaveNamesOfTheirOwn) {
  std::vector<std::string_view> names, shown;
  const Execution any;
  fields(
      [&](const Field& field, const auto&) {
        names.push_back(field.name);
        if (field.shown != Field::Shown::no) shown.push_back(field.api_name());
      },
      any);
  for (auto* list : {&names, &shown}) {
    std::sort(list->begin(), list->end());
    EXPECT_EQ(std::adjacent_find(list->begin(), list->end()), list->end());
  }
}

TEST(Fields, AFilledExecutionHasNoDefaultLeft) {
  const auto all = filled<Execution>();
  const Execution none;
  // Two executions that differ in one field have different checksums, or the field is one by which it is found.
  EXPECT_NE(checksum_of_state(all), checksum_of_state(none));
  EXPECT_NE(checksum_of_facts(all), checksum_of_facts(none));
  EXPECT_EQ(filled<Execution>(), all);
}

// Stored by number, in rows and in cache entries. A number never changes its meaning: new words go to the end.
template <class Enum, class... Words>
void expect_numbers(Words... words) {
  int number = 0;
  for (const Enum word : {words...}) EXPECT_EQ(static_cast<int>(word), number++);
}

TEST(StoredEnums, KeepTheirNumbers) {
  expect_numbers<Kind>(Kind::task, Kind::workflow);
  expect_numbers<Status>(Status::pending, Status::running, Status::suspended, Status::completed, Status::failed,
                         Status::cancelled, Status::timed_out);
  expect_numbers<Strategy>(Strategy::caller_provided, Strategy::strict, Strategy::contextual, Strategy::always_unique);
  using Tag = Scope::Tag;
  expect_numbers<Tag>(Tag::type, Tag::queue, Tag::global, Tag::custom, Tag::workflow);
  using Of = Event::Kind;
  expect_numbers<Of>(Of::task, Of::sleep, Of::wait_signal, Of::child, Of::side_effect, Of::version, Of::closed,
                     Of::fired, Of::signal, Of::completed, Of::failed, Of::cancelled, Of::timed_out, Of::stuck,
                     Of::resumed, Of::forked, Of::continued);
}

}  // namespace
}  // namespace hapax
