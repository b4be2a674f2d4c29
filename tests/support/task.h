// A submission in one line: Task("charge").queue("payments").key("order-1").input("7").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.h"

namespace hapax {

// The n-th id of a test: a valid UUIDv7, the same in every run, rising with n.
ExecutionId test_id(std::uint64_t n);

// The n-th lease secret of a test.
LeaseSecret test_secret(std::uint64_t n);

// The token under which a claimed execution is reported on.
LeaseToken token_of(const Execution& claimed);

// The identity of a caller's key in the scope of a type.
IdentityHash key_hash(std::string_view type, std::string_view key, std::string_view name_space = "default");

// The names are those of the submission's members. Defaults: namespace "default", queue "work", no identity, and an id
// that no other Task of this process has.
class Task {
 public:
  explicit Task(std::string type = "work");

  Task& id(const ExecutionId& id);
  Task& name_space(std::string name);
  Task& queue(std::string name);
  Task& input(std::string canonical_json);
  Task& key(std::string key);                                    // caller_provided, in the scope of the type
  Task& identity(Strategy strategy, std::string_view material);  // strict or contextual
  Task& scope(Scope scope);                                      // of the identity, which was given before
  Task& reuse(Reuse reuse);
  Task& ttl(Duration ttl);
  Task& priority(std::int32_t priority);
  Task& run_at(Time at);
  Task& delay(Duration delay);
  Task& max_attempts(std::int32_t attempts);
  Task& retry(RetryPolicy policy);
  Task& timeout(Duration timeout);
  Task& deadline(Duration from_creation);
  Task& deadline_at(Time at);
  Task& concurrency_key(std::string key);
  Task& parent(const ExecutionId& parent);
  Task& kind(Kind kind);
  Task& status(Status status);
  Task& dry_run();
  Task& run_here(std::string worker, const LeaseSecret& secret, Duration lease = std::chrono::seconds(60));

  Submission submission() const;
  operator Submission() const { return submission(); }

 private:
  Submission submission_;
  std::string material_;
};

}  // namespace hapax
