// Runs the transactions of the verbs: on a connection of the pool, again after a conflict with others, and with
// PostgreSQL's errors as Failures.
//
// A runner serves one identity of the store (ConnectionOptions::identity). Everything that is remembered of the data
// lives in the runner or beside it, and is thrown away with it when the identity turns out to be another.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <type_traits>

#include "store/postgres/connection/pool.h"
#include "store/postgres/fast/row_locations.h"
#include "store/postgres/fast/switches.h"
#include "store/postgres/workspace.h"

namespace hapax::postgres {

class Runner {
 public:
  // Without a clock of the caller's, the time is the server's. The clock must outlive the runner. Calls `on_replaced`
  // once, when the identity is found to be another; from then on every transaction fails.
  Runner(ConnectionOptions options, std::size_t connections, const Clock* clock, std::function<void()> on_replaced,
         fast::Switches fast = {})
      : fast_(fast),
        identity_(options.identity),
        on_replaced_(std::move(on_replaced)),
        pool_(with_bounds(std::move(options)), connections),
        reads_(static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, connections / 3))),
        clock_(clock),
        queues_([this](const std::vector<QueueName>& queues) { add_queues(queues); }) {}

  const fast::Switches& fast() const { return fast_; }
  const std::string& identity() const { return identity_; }
  bool is_replaced() const { return replaced_; }

  QueueNumbers& queues() { return queues_; }
  RowLocations& locations() { return locations_; }
  const Clock* clock() const { return clock_; }
  std::optional<std::int64_t> now_parameter() const {
    return clock_ ? std::optional(to_ms(clock_->now())) : std::nullopt;
  }

  void set_policies(std::shared_ptr<const QueuePolicies> policies) {
    const std::lock_guard lock(policies_mutex_);
    policies_ = std::move(policies);
  }
  std::shared_ptr<const QueuePolicies> policies() {
    const std::lock_guard lock(policies_mutex_);
    return policies_;
  }

  // The time that all who share the database agree on, from the server's last answer.
  Time now() const;
  void note(Time server_now);

  // Work on a workspace; what it changed is written and committed.
  template <class Work>
  std::invoke_result_t<Work, Workspace&> transact(Work work) {
    const auto rules = policies();
    return attempt([&](Connection& connection) {
      connection.begin();
      Workspace workspace(connection, queues_, *rules, clock_);
      auto outcome = work(workspace);
      note(workspace.now());
      workspace.write();
      connection.commit();
      return outcome;
    });
  }

  // Reads a workspace and changes nothing. May be done twice if the connection is lost.
  template <class Work>
  std::invoke_result_t<Work, Workspace&> read(Work work) {
    const auto rules = policies();
    return attempt_reading([&](Connection& connection) {
      connection.begin_reading();
      Workspace workspace(connection, queues_, *rules, clock_);
      auto outcome = work(workspace);
      note(workspace.now());
      connection.commit();
      return outcome;
    });
  }

  // The same for reads, which leave most connections to writers.
  template <class Work>
  std::invoke_result_t<Work, Workspace&> read_aside(Work work) {
    const Aside aside(reads_);
    return read(std::move(work));
  }

  // One statement that changes something, in one round trip.
  Rows run_at_once(const Statement& statement, const Parameters& parameters) {
    return attempt([&](Connection& connection) {
      connection.begin_implicitly();
      connection.send(statement, parameters);
      return connection.receive_and_commit();
    });
  }

  // Any work on a connection that begins and ends its transaction itself.
  template <class Work>
  std::invoke_result_t<Work, Connection&> attempt(Work work) {
    for (int tries = 0;; ++tries) {
      Pool::Lease connection = take();
      try {
        return work(*connection);
      } catch (const Replaced&) {
        connection->rollback();
        note_replaced();
        throw replaced();
      } catch (const Refused& refused) {
        connection->rollback();
        const bool again = refused.is_conflict() ? tries < kMostConflicts : connection->broken() && tries == 0;
        if (connection->broken()) pool_.forget_idle();  // they would say the same
        if (!again || CallDeadline::is_over()) throw refused.as_failure();
      } catch (const Lost& lost) {
        pool_.forget_idle();
        if (lost.committing() || tries > 0 || CallDeadline::is_over()) throw lost.as_failure();
      } catch (...) {
        connection->rollback();
        throw;
      }
    }
  }

  // Makes sure that the queues have numbers.
  void add_queues(const std::vector<QueueName>& queues);

  Pool& pool() { return pool_; }

  // Held while turns are committed by the rules. Closing a run changes the run that waits for it, in no fixed order, so
  // two such batches could deadlock.
  CallMutex& slow_turn_mutex() { return slow_turn_mutex_; }

 private:
  static constexpr int kMostConflicts = 20;
  static constexpr int kLockTimeoutMs = 3000;

  using Reads = std::counting_semaphore<>;
  class Aside {
   public:
    explicit Aside(Reads& reads) : reads_(reads) {
      const auto deadline = CallDeadline::current();
      if (deadline == CallDeadline::Instant::max()) {
        reads_.acquire();
      } else if (!reads_.try_acquire_until(deadline)) {
        throw Failure(Failure::Code::unavailable, "PostgreSQL: the reads before this one have not ended in time");
      }
    }
    ~Aside() { reads_.release(); }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    Reads& reads_;
  };

  // A foreign open transaction must not block everyone forever.
  static ConnectionOptions with_bounds(ConnectionOptions options) {
    options.lock_timeout_ms = kLockTimeoutMs;
    if (options.statement_timeout_ms > 0) {
      options.lock_timeout_ms = std::min(options.lock_timeout_ms, options.statement_timeout_ms);
    }
    return options;
  }

  template <class Work>
  std::invoke_result_t<Work, Connection&> attempt_reading(Work work) {
    for (int tries = 0;; ++tries) {
      try {
        return attempt(work);
      } catch (const Failure& failure) {
        if (failure.code() != Failure::Code::outcome_unknown) throw;
        if (tries > 0 || CallDeadline::is_over()) throw Failure(Failure::Code::unavailable, failure.what());
      }
    }
  }

  Pool::Lease take();
  void note_replaced();
  static Failure replaced();

  const fast::Switches fast_;
  const std::string identity_;
  const std::function<void()> on_replaced_;
  std::atomic<bool> replaced_ = false;
  Pool pool_;
  Reads reads_;
  const Clock* clock_;
  QueueNumbers queues_;
  RowLocations locations_;
  std::atomic<std::int64_t> ahead_ms_ = 0;  // the server's clock of this machine's
  CallMutex slow_turn_mutex_;
  std::mutex policies_mutex_;
  std::shared_ptr<const QueuePolicies> policies_ = std::make_shared<QueuePolicies>();
};

// The queues of that kind in which closing deletes nothing; of that namespace, unless it is empty.
Array retained_queues(Runner& runner, Kind kind, const std::string& name_space = "");

}  // namespace hapax::postgres
