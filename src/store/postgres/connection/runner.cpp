#include "store/postgres/connection/runner.h"

#include <algorithm>

namespace hapax::postgres {

Time Runner::now() const {
  if (clock_) return clock_->now();
  return SystemClock().now() + Duration(ahead_ms_.load());
}

void Runner::note(Time server_now) { ahead_ms_ = (server_now - SystemClock().now()).count(); }

void Runner::note_replaced() {
  if (!replaced_.exchange(true)) on_replaced_();
}

Failure Runner::replaced() {
  return {Failure::Code::unavailable,
          "PostgreSQL: the schema was dropped, created anew or restored, or another server answers; nothing was done. "
          "Where the"
          " schema is missing, run `hapax migrate`"};
}

Pool::Lease Runner::take() {
  if (replaced_) throw replaced();
  try {
    return pool_.take();
  } catch (const Refused& refused) {
    throw refused.as_failure();
  } catch (const Lost& lost) {
    throw lost.as_failure();
  }
}

void Runner::add_queues(const std::vector<QueueName>& queues) {
  std::vector<QueueName> unknown;
  for (const QueueName& name : queues) {
    if (!queues_.knows(name) && std::find(unknown.begin(), unknown.end(), name) == unknown.end())
      unknown.push_back(name);
  }
  if (unknown.empty()) return;
  // Repeating it is harmless, so that a lost answer is none of the caller's concern.
  attempt_reading([&](Connection& connection) {
    connection.begin_implicitly();
    queues_.add(connection, unknown);
    connection.commit();
    return true;
  });
}

Array retained_queues(Runner& runner, Kind kind, const std::string& name_space) {
  const auto policies = runner.policies();
  Array numbers(Type::int4);
  for (const auto& [name, number] : runner.queues().all()) {
    if (name.kind != kind || (!name_space.empty() && name.name_space != name_space)) continue;
    if (policies->retention(name.name_space, name.queue, name.kind) > Duration::zero()) numbers.integer(number);
  }
  return numbers;
}

}  // namespace hapax::postgres
