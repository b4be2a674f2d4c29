#include "support/task.h"

#include <atomic>
#include <utility>

#include "core/identity.h"

namespace hapax {

namespace {

template <std::size_t N>
void write_tail(std::array<std::uint8_t, N>& bytes, std::uint64_t n) {
  for (std::size_t i = 0; i < 8; ++i) bytes[N - 1 - i] = static_cast<std::uint8_t>(n >> (8 * i));
}

std::atomic<std::uint64_t> next_id{1};

}  // namespace

ExecutionId test_id(std::uint64_t n) {
  ExecutionId id;
  write_tail(id.bytes, n);
  id.bytes[0] = 0x01;
  id.bytes[6] = 0x70;
  id.bytes[8] = 0x80;
  return id;
}

LeaseSecret test_secret(std::uint64_t n) {
  LeaseSecret secret;
  write_tail(secret.bytes, n);
  return secret;
}

LeaseToken token_of(const Execution& claimed) { return {claimed.id, claimed.attempt, claimed.lease_secret.value()}; }

IdentityHash key_hash(std::string_view type, std::string_view key, std::string_view name_space) {
  return hash_key({name_space, type, "", Scope{}}, key);
}

Task::Task(std::string type) {
  Execution& execution = submission_.execution;
  execution.id = test_id(next_id++);
  execution.name_space = "default";
  execution.type = std::move(type);
  execution.queue = "work";
}

Task& Task::id(const ExecutionId& id) {
  submission_.execution.id = id;
  return *this;
}
Task& Task::name_space(std::string name) {
  submission_.execution.name_space = std::move(name);
  return *this;
}
Task& Task::queue(std::string name) {
  submission_.execution.queue = std::move(name);
  return *this;
}
Task& Task::input(std::string canonical_json) {
  submission_.execution.input = std::move(canonical_json);
  return *this;
}
Task& Task::key(std::string key) {
  submission_.execution.identity = Identity{};
  submission_.execution.idempotency_key = key;
  material_ = std::move(key);
  return *this;
}
Task& Task::identity(Strategy strategy, std::string_view material) {
  submission_.execution.identity = Identity{{}, strategy, {}};
  material_ = std::string(to_string(strategy)) + ":" + std::string(material);
  return *this;
}
Task& Task::scope(Scope scope) {
  submission_.execution.identity.value().scope = std::move(scope);
  return *this;
}
Task& Task::reuse(Reuse reuse) {
  submission_.reuse = reuse;
  return *this;
}
Task& Task::ttl(Duration ttl) {
  submission_.idempotency_ttl = ttl;
  return *this;
}
Task& Task::priority(std::int32_t priority) {
  submission_.execution.priority = priority;
  return *this;
}
Task& Task::run_at(Time at) {
  submission_.run_at = at;
  return *this;
}
Task& Task::delay(Duration delay) {
  submission_.delay = delay;
  return *this;
}
Task& Task::max_attempts(std::int32_t attempts) {
  submission_.execution.max_attempts = attempts;
  return *this;
}
Task& Task::retry(RetryPolicy policy) {
  submission_.execution.retry = policy;
  return *this;
}
Task& Task::timeout(Duration timeout) {
  submission_.execution.timeout = timeout;
  return *this;
}
Task& Task::deadline(Duration from_creation) {
  submission_.deadline = from_creation;
  return *this;
}
Task& Task::deadline_at(Time at) {
  submission_.execution.deadline_at = at;
  return *this;
}
Task& Task::concurrency_key(std::string key) {
  submission_.execution.concurrency_key = std::move(key);
  return *this;
}
Task& Task::parent(const ExecutionId& parent) {
  submission_.execution.parent = parent;
  return *this;
}
Task& Task::kind(Kind kind) {
  submission_.execution.kind = kind;
  return *this;
}
Task& Task::status(Status status) {
  submission_.execution.status = status;
  return *this;
}
Task& Task::run_here(std::string worker, const LeaseSecret& secret, Duration lease) {
  submission_.run_here = {std::move(worker), lease, secret};
  return *this;
}

Task& Task::dry_run() {
  submission_.dry_run = true;
  return *this;
}

Submission Task::submission() const {
  Submission submission = submission_;
  Execution& execution = submission.execution;
  execution.input_hash = hash_input(execution.input);
  if (execution.identity) {
    const IdentityParts parts{execution.name_space, execution.type, execution.queue, execution.identity->scope};
    execution.identity->hash = hash_key(parts, material_);
  }
  return submission;
}

}  // namespace hapax
