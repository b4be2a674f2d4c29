// The rules of a queue, as every store applies them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/execution.h"
#include "core/rate.h"
#include "core/time.h"

namespace hapax {

struct QueuePolicy {
  bool paused = false;
  std::optional<Rate> rate_limit;
  std::optional<std::int32_t> max_running;
  std::int32_t concurrency_limit = 1;  // running at once with the same concurrency key
  Duration cancel_grace{30'000};       // how long a cancelled running task may take to stop
  std::optional<Duration> retention;   // of closed executions; absent: the default of their kind
  std::optional<Duration> idempotency_ttl;

  bool operator==(const QueuePolicy&) const = default;
};

// The rules of all queues: a snapshot. The engine makes a new one when settings change.
class QueuePolicies {
 public:
  void set(std::string name_space, std::string queue, QueuePolicy policy);  // of one queue in one namespace
  void set_everywhere(std::string queue, QueuePolicy policy);  // of that queue name in every other namespace

  // The queue's own rules, or those of its name everywhere, or the defaults.
  const QueuePolicy& of(std::string_view name_space, std::string_view queue) const;

  Duration retention(std::string_view name_space, std::string_view queue, Kind kind) const;
  Duration retention(const Execution& execution) const {
    return retention(execution.name_space, execution.queue, execution.kind);
  }
  bool any_deleted_at_once() const;  // some queues may delete executions as they close

  Duration task_retention = std::chrono::days(7);
  Duration workflow_retention = std::chrono::days(30);
  // A workflow with more events than this fails with HistoryLimitExceeded: it should have continued as new.
  std::int64_t history_limit = 50'000;

 private:
  using Key = std::pair<std::string, std::string>;
  struct Less {
    using is_transparent = void;
    using View = std::pair<std::string_view, std::string_view>;
    static View view(const Key& k) { return {k.first, k.second}; }
    static View view(const View& v) { return v; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return view(a) < view(b);
    }
  };

  std::map<Key, QueuePolicy, Less> queues_;
  std::map<std::string, QueuePolicy, std::less<>> everywhere_;
  QueuePolicy defaults_;
};

}  // namespace hapax
