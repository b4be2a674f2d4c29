// What happens in this program's workers, for logs, metrics and traces.
//
//   app.observe({.attempt_failed = [&](const hapax::AttemptFailed& attempt) { failures.increment(attempt.type); },
//                .server_away = [&](const hapax::ServerAway& away) { page_somebody(away.error); }});
//
// The functions are called on the app's threads, several at a time. They must be quick, and what they throw is ignored.
// Whether anybody observes or not, each of these but the completed attempts is one line of the log as well: see
// OpenOptions::log.
#pragma once

#include <cstdint>
#include <string>

#include "hapax/detail/durations.h"
#include "hapax/detail/std_function.h"

namespace hapax {

struct AttemptCompleted {
  std::string id, type;
  std::int32_t attempt = 0;
  std::chrono::nanoseconds took{0};
};

struct AttemptFailed {
  std::string id, type;
  std::int32_t attempt = 0;
  std::chrono::nanoseconds took{0};
  std::string error_type, message;
  bool is_final = false;  // by FinalError: it is not tried again
};

// Another attempt has the task or the turn, or it is closed: what this one did or returned is refused.
struct LeaseLost {
  std::string id, type;
  std::int32_t attempt = 0;
};

// The code of a workflow does not fit its history, or this program does not have it. It waits for a worker whose code
// fits.
struct WorkflowStuck {
  std::string workflow_id, type;
  std::string error_type, message;
};

struct ServerAway {
  std::string error;
};

struct ServerBack {
  std::chrono::milliseconds after{0};
};

// A task was given back, because nothing here is declared for its type. Told once for each type.
struct UnknownType {
  std::string type;
};

struct Observer {
  std::function<void(const AttemptCompleted&)> attempt_completed = {};
  std::function<void(const AttemptFailed&)> attempt_failed = {};
  std::function<void(const WorkflowStuck&)> stuck = {};
  std::function<void(const LeaseLost&)> lease_lost = {};
  std::function<void(const ServerAway&)> server_away = {};
  std::function<void(const ServerBack&)> server_back = {};
  std::function<void(const UnknownType&)> unknown_type = {};
};

}  // namespace hapax
