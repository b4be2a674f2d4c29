#include "store/postgres/tables/queue_numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace hapax::postgres {

namespace {

constexpr const char* kNames = "unnest($1::bytea[], $2::bytea[], $3::int2[]) AS g (name_space, queue, kind)";

const Statement kAdd{"add_queues",
                     fmt::format("INSERT INTO queues (name_space, queue, kind)"
                                 " SELECT g.name_space, g.queue, g.kind FROM {} WHERE NOT EXISTS (SELECT 1"
                                 " FROM queues q WHERE q.name_space = g.name_space AND q.queue = g.queue"
                                 " AND q.kind = g.kind)"
                                 " ORDER BY g.name_space, g.queue, g.kind ON CONFLICT DO NOTHING",
                                 kNames)};

const Statement kByName{"queues_by_name", fmt::format("SELECT q.queue_no, q.name_space, q.queue, q.kind FROM {}"
                                                      " JOIN queues q USING (name_space, queue, kind)",
                                                      kNames)};

const Statement kByNumber{"queues_by_number",
                          "SELECT q.queue_no, q.name_space, q.queue, q.kind FROM queues q"
                          " WHERE q.queue_no = ANY($1::int4[])"};

Parameters parameters_of(const std::vector<QueueName>& queues) {
  Array name_spaces(Type::bytea), names(Type::bytea), kinds(Type::int2);
  for (const QueueName& name : queues) {
    name_spaces.bytes(name.name_space);
    names.bytes(name.queue);
    kinds.word(name.kind);
  }
  Parameters parameters;
  parameters.array(std::move(name_spaces)).array(std::move(names)).array(std::move(kinds));
  return parameters;
}

}  // namespace

void QueueNumbers::add(Connection& connection, const std::vector<QueueName>& queues) {
  connection.run(kAdd, parameters_of(queues));
  learn(connection.run(kByName, parameters_of(queues)));
}

void QueueNumbers::look_up(Connection& connection, const std::vector<QueueName>& queues) {
  std::vector<QueueName> unknown;
  std::copy_if(queues.begin(), queues.end(), std::back_inserter(unknown),
               [&](const auto& name) { return !knows(name); });
  if (!unknown.empty()) learn(connection.run(kByName, parameters_of(unknown)));
}

void QueueNumbers::look_up(Connection& connection, const std::vector<std::int32_t>& numbers) {
  Array unknown(Type::int4);
  {
    const std::lock_guard lock(mutex_);
    for (const std::int32_t number : numbers) {
      if (!names_.contains(number)) unknown.integer(number);
    }
  }
  if (unknown.size() == 0) return;
  Parameters parameters;
  parameters.array(std::move(unknown));
  learn(connection.run(kByNumber, parameters));
}

std::int32_t QueueNumbers::number(Connection& connection, const QueueName& name) {
  if (const auto known = find(name)) return *known;
  adder_ ? adder_({name}) : add(connection, {name});
  return find(name).value();
}

std::optional<std::int32_t> QueueNumbers::find(const QueueName& name) {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

QueueName QueueNumbers::name_of(std::int32_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(number);
  if (found == names_.end()) {
    throw Failure(Failure::Code::corrupt, fmt::format("PostgreSQL: queue {} has no name; restore a backup", number));
  }
  return found->second;
}

std::vector<std::pair<QueueName, std::int32_t>> QueueNumbers::all() {
  const std::lock_guard lock(mutex_);
  return {numbers_.begin(), numbers_.end()};
}

void QueueNumbers::learn(const Rows& rows) {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < rows.size(); ++i) {
    Cells cells(rows, i);
    const auto number = static_cast<std::int32_t>(cells.integer());
    QueueName name;
    name.name_space = cells.text();
    name.queue = cells.text();
    name.kind = cells.word<Kind>();
    numbers_[name] = number;
    names_[number] = name;
  }
}

}  // namespace hapax::postgres
