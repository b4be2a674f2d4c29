// The options of opening, declaring, submitting, starting and working. All are aggregates: name only what you set.
//
//   app.submit("charge_card", order, {.key = "order-456", .priority = 10});
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/detail/durations.h"
#include "hapax/detail/std_function.h"

namespace hapax {

namespace detail {
class AppState;
class Declared;
}  // namespace detail

using Milliseconds = std::chrono::milliseconds;

// The idempotency key of a control operation (cancel, retry, resume, fork, signal): the same operation under the same
// key again does nothing more. A string is one, too; hapax::request("click-1") says what it is.
struct RequestKey {
  RequestKey(const char* key) : text(key) {}
  RequestKey(std::string key) : text(std::move(key)) {}
  explicit RequestKey(std::string_view key) : text(key) {}

  std::string text;
};
inline RequestKey request(std::string key) { return {std::move(key)}; }

// When the cron schedules of a store fire from this program. (A server fires those of its store at all times.)
enum class Schedules : std::uint8_t { while_working, always, never };

struct OpenOptions {
  std::string name_space = "default";
  std::string token = {};  // for http://: sent as the bearer token

  // Takes over the lines that workers write: a failed attempt, a lost lease, a stuck workflow, a server that is away or
  // back, a type that is not declared here. Called on any thread. Absent: they go to standard error.
  std::function<void(std::string_view line)> log = {};

  // For URLs of stores. A program that only submits fires no schedule; one that works does, like a server.
  Schedules schedules = Schedules::while_working;
  // Likewise: a hapax.toml, whose queues, types, activities, [identity] and [cleanup] count for this program as they
  // would for a server. Empty: none is read. Several programs on one store should read the same.
  std::string config = {};
};

struct RetryOptions {
  std::optional<Milliseconds> initial = {};  // the pause after the first failure (1 s)
  std::optional<double> factor = {};         // how it grows (2)
  std::optional<Milliseconds> max = {};      // and where it stops growing (60 s)
};

// What makes two submissions the same: "strict" (the input), "contextual" (named fields of the input), "always_unique"
// (nothing does), "caller_provided" (the key, which must be there). By its name, or by one of the functions below.
struct IdentityOption {
  IdentityOption(const char* name) : strategy(name) {}
  IdentityOption(std::string name) : strategy(std::move(name)) {}
  IdentityOption(std::string name, std::vector<std::string> pointers)
      : strategy(std::move(name)), fields(std::move(pointers)) {}

  std::string strategy;
  std::vector<std::string> fields = {};  // JSON Pointers, for "contextual"
};

inline IdentityOption strict() { return {"strict"}; }
inline IdentityOption always_unique() { return {"always_unique"}; }
inline IdentityOption caller_provided() { return {"caller_provided"}; }
template <class... Fields>
IdentityOption contextual(Fields... fields) {
  return {"contextual", {std::string(std::move(fields))...}};
}

// Of a task type, when it is declared to the app. `queue` is where it waits unless the submission says otherwise, and
// where App::work() claims it.
//
// The rest is kept with the type, for its submissions from anywhere, until a program declares something else. Those of
// hapax.toml and of the API win; `hapax types show` says what decides. Only `identity` changes what is the same. A task
// that is declared without any of these leaves the type as it is.
struct TaskOptions {
  std::string queue = "default";
  std::optional<std::int32_t> max_attempts = {};
  RetryOptions retry = {};
  std::optional<Milliseconds> timeout = {};  // of one attempt
  std::optional<IdentityOption> identity = {};
  std::optional<std::vector<std::string>> identity_fields = {};  // as in SubmitOptions
  std::optional<std::string> reuse = {};                         // likewise
};

// Of a workflow type, likewise.
struct WorkflowOptions {
  std::string queue = "default";

  // What the stack of its code may take, at most; only the used part takes memory. Code that goes beyond it ends its
  // program with a sentence that names the workflow. Absent: WorkOptions::workflow_stack_bytes.
  std::optional<std::size_t> stack_bytes = {};
};

// How long something is kept: a duration, or std::chrono's days as 30d.
struct Retention {
  template <class Rep, class Period>
  Retention(std::chrono::duration<Rep, Period> duration) : length(std::chrono::duration_cast<Milliseconds>(duration)) {}
  template <class Day>
    requires requires(Day day) { day.ok(), static_cast<unsigned>(day), ++day; }  // std::chrono::day
  Retention(Day day) : length(std::chrono::days(static_cast<unsigned>(day))) {}

  Milliseconds length;
};

// Of a queue. What is absent is as the server has it.
//
//   app.configure_queue("payments", {.retention = 30d, .rate_limit = "100/sec"});
struct QueueOptions {
  std::optional<Retention> retention = {};     // of closed tasks; 0: they are deleted as they close
  std::optional<std::string> rate_limit = {};  // "100/sec", "500/min", "10000/hour", "5/day"
  std::optional<std::int64_t> burst = {};      // how many may start at once; with a rate limit
  std::optional<std::int32_t> max_running = {};
  std::optional<std::int32_t> concurrency_limit = {};  // of tasks with one concurrency key (1)
  std::optional<Milliseconds> cancel_grace = {};       // from the request to the end of a running task
  std::optional<Milliseconds> idempotency_ttl = {};
};

// Of one submission. The type's settings decide what is absent, then the queue's, then the server's.
struct SubmitOptions {
  std::optional<std::string> key = {};    // the idempotency key: your name for this one intent
  std::optional<std::string> scope = {};  // "type" (default), "queue", "global", or a custom name
  std::optional<std::string> queue = {};

  std::optional<IdentityOption> identity = {};
  std::optional<std::vector<std::string>> identity_fields = {};  // JSON Pointers, for "contextual"
  std::optional<std::string> reuse = {};                         // "allow_failed", "reject", "allow_closed", "replace"
  std::optional<std::string> on_duplicate = {};  // "return", or "error": throw TaskAlreadyExists, TaskAlreadyCompleted
  std::optional<Milliseconds> idempotency_ttl = {};

  std::optional<std::int32_t> priority = {};  // higher goes first
  std::optional<std::chrono::system_clock::time_point> run_at = {};
  std::optional<Milliseconds> delay = {};
  std::optional<std::int32_t> max_attempts = {};
  RetryOptions retry = {};
  std::optional<Milliseconds> timeout = {};   // of one attempt
  std::optional<Milliseconds> deadline = {};  // of all attempts together, from now
  std::optional<std::string> concurrency_key = {};
  std::map<std::string, std::string> headers =
      {};                              // for the handler (TaskContext::headers); steps and children inherit them
  std::vector<std::string> tags = {};  // shown with it; at most 16
  bool dry_run = false;                // say what would happen, and change nothing

  // The id of the submission; drawn if absent. Sent again under its id, for example after an error that leaves the
  // outcome unknown, it gets its first answer again, with or without a key.
  std::optional<std::string> id = {};
};

// Draws an id for SubmitOptions: a UUID of version 7.
std::string new_id();

// Shorthand for the usual case: app.submit("charge_card", order, hapax::key("order-456")).
inline SubmitOptions key(std::string idempotency_key) { return {.key = std::move(idempotency_key)}; }

struct WorkOptions {
  std::size_t threads = 4;               // handlers and turns that run at once
  std::vector<std::string> queues = {};  // empty: those of the declared tasks and workflows
  std::string name = {};                 // of this worker, shown with the tasks it runs; empty: host and pid
  Milliseconds lease{60'000};            // a worker without a heartbeat for this long counts as dead
  bool handle_signals = true;            // SIGTERM and SIGINT drain: finish what runs, claim nothing more, return
  std::optional<Milliseconds> until_idle_for = {};  // return when there was nothing to do for this long

  // The latest waiting workflows are kept in memory, up to this many, and continue from where they are. Others are
  // replayed from the start of their history. Each has a stack of this many bytes, of which only the used part takes
  // memory. With 0, every turn is replayed, and no step runs within the turn that asks for it.
  std::size_t kept_workflows = 1000;
  std::size_t workflow_stack_bytes = 256 * 1024;
};

}  // namespace hapax
