// The numbers that stand for queue names in the tables. A number never changes, so it is looked up once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/execution.h"
#include "store/postgres/connection/connection.h"

namespace hapax::postgres {

struct QueueName {
  std::string name_space, queue;
  Kind kind = Kind::task;  // turns of workflows wait apart from tasks

  auto operator<=>(const QueueName&) const = default;
};

class QueueNumbers {
 public:
  using Adder = std::function<void(const std::vector<QueueName>&)>;

  // The adder adds queues in a separate transaction: a number that was rolled back must not be remembered. Without one,
  // they are added in the caller's transaction, and the numbers are valid only there.
  explicit QueueNumbers(Adder adder = {}) : adder_(std::move(adder)) {}

  // Makes sure that all of these have numbers. Within a transaction of the caller's.
  void add(Connection& connection, const std::vector<QueueName>& queues);
  // Looks up those that it does not know yet. Within a transaction of the caller's.
  void look_up(Connection& connection, const std::vector<QueueName>& queues);
  void look_up(Connection& connection, const std::vector<std::int32_t>& numbers);

  // Its number, added where it has none.
  std::int32_t number(Connection& connection, const QueueName& name);

  bool knows(const QueueName& name) { return find(name).has_value(); }
  std::optional<std::int32_t> find(const QueueName& name);
  QueueName name_of(std::int32_t number);  // of one that was looked up
  std::vector<std::pair<QueueName, std::int32_t>> all();

  // What else is numbered, and only ever grows: no key is on a shelf before this one.
  std::int32_t first_shelf() const { return first_shelf_; }
  void set_first_shelf(std::int32_t shelf) { first_shelf_ = shelf; }

 private:
  void learn(const Rows& rows);

  const Adder adder_;
  std::mutex mutex_;
  std::map<QueueName, std::int32_t> numbers_;
  std::map<std::int32_t, QueueName> names_;
  std::atomic<std::int32_t> first_shelf_ = 0;
};

}  // namespace hapax::postgres
