// A task from both ends: the declared task as a value, which submits; the handler's context.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "hapax/detail/declared.h"
#include "hapax/detail/durations.h"
#include "hapax/detail/effects.h"
#include "hapax/detail/std_function.h"
#include "hapax/error.h"
#include "hapax/handle.h"
#include "hapax/json.h"
#include "hapax/options.h"

namespace hapax {

class App;

namespace detail {
class RunningTask;
}

// A task type: its name, its input and its result (void: none). App::task() returns one for what it declares,
// App::task_named() for what another program runs. A plain value: hand it to workflows, handlers and threads as you
// like. It keeps no app alive.
//
//   auto charge = app.task("charge", charge_card, {.queue = "payments"});
//   std::string payment = charge.submit(order, hapax::key("charge-456")).result();
//
// One that is made from its name alone belongs to no app yet. Workflows can run it, App::submit() and App::task() take
// it, and so it can stand in a header, for all programs that have to do with this task:
//
//   inline const hapax::Task<Order, std::string> charge("charge");
template <class Input, class Result>
class Task : public detail::Declared {
 public:
  explicit Task(std::string name) : Declared(std::move(name), {}) {}

  // Submits it, as App::submit() does.
  Handle<Result> submit(const detail::Value<Input>& input, const SubmitOptions& options = {}) const {
    return Handle<Result>(submit_json(to_json(input), options));
  }
  Handle<Result> submit(const SubmitOptions& options = {}) const
    requires std::is_void_v<Input>
  {
    return Handle<Result>(submit_json({}, options));
  }

  // Without waiting, as App::submit_async() does.
  void submit_async(const detail::Value<Input>& input, const SubmitOptions& options,
                    std::function<void(Handle<Result>)> done) const {
    submit_json_async(to_json(input), options,
                      [done = std::move(done)](AnyHandle handle) { done(Handle<Result>(std::move(handle))); });
  }

  // Inside a transaction of the caller's own, as App::submit_in() does: a sqlite3* or a PGconn*.
  template <class Connection>
  Handle<Result> submit_in(Connection* connection, const detail::Value<Input>& input,
                           const SubmitOptions& options = {}) const {
    return Handle<Result>(submit_json_in(connection, to_json(input), options));
  }

 private:
  friend class App;
  Task(std::string name, std::weak_ptr<detail::AppState> app) : Declared(std::move(name), std::move(app)) {}
};

// What a handler may ask about its attempt. Valid while the handler runs.
class TaskContext {
 public:
  std::string id() const;
  std::string type() const;
  std::int32_t attempt() const;  // 1 is the first

  // The same over all attempts of this task: pass it to other systems as their idempotency key, so that the next
  // attempt does not repeat a charge made by an attempt that died.
  std::string effect_key() const;

  // Runs `function` once over all attempts, in the transaction that you have begun on your own connection (sqlite3* or
  // PGconn*), and returns its result. The effect key and the result are written beside what the function writes:
  // commit, and it has happened. A later attempt, or a worker that lost its lease meanwhile, gets the stored result,
  // and the function does not run again. If it throws, what it wrote is undone.
  //
  //   const int entry = context.once_in(db, book, order);    // calls book(db, order), or book(order)
  //
  // A handler with several of them gives each a name in front of the function. `hapax effects --sql sqlite` prints the
  // table.
  template <class Connection, class Function, class... Arguments>
    requires(!std::is_convertible_v<Function, std::string_view>)
  auto once_in(Connection* connection, Function&& function, const Arguments&... arguments) const {
    return detail::run_effect(connection, effect_key(), std::forward<Function>(function), arguments...);
  }
  template <class Connection, class Function, class... Arguments>
  auto once_in(Connection* connection, std::string_view name, Function&& function,
               const Arguments&... arguments) const {
    return detail::run_effect(connection, effect_key() + "/" + std::string(name), std::forward<Function>(function),
                              arguments...);
  }

  // What the submission sent along (SubmitOptions::headers), or what the workflow's did.
  std::map<std::string, std::string> headers() const;

  // The task was cancelled, its attempt's time is over, or the lease was lost. Long handlers check now and then, clean
  // up, and throw hapax::Cancelled; whatever they return after a lost lease is refused.
  bool cancel_requested() const;

  // The app that runs this handler, to submit more or to look something up. Do not capture the app by value instead:
  // it would hold its handlers, and they it.
  App app() const;

  // How far it is, for people who look: any JSON value; the last one counts. A line for the attempt's log, which keeps
  // the latest 64 KiB. Both are sent with the next heartbeat, a second later at most, and before the result.
  template <class Value>
  void progress(const Value& value) const {
    progress_json(to_json(value));
  }
  void progress_json(std::string_view json) const;
  void log(std::string_view line) const;

 private:
  friend class detail::RunningTask;
  explicit TaskContext(const detail::RunningTask& task) : task_(task) {}

  const detail::RunningTask& task_;
};

}  // namespace hapax
