// Everything a user can ask of Hapax, as plain values in and out, by groups of verbs. One implementation works on a
// store (local_engine.h); another speaks HTTP to a server. Code that knows this interface runs embedded and remote.
//
// Verbs that commit answer through a Reply, after the commit. Reads answer at once. All may be called from any thread,
// and a Reply may come on the calling thread before the call returns.
//
// A request that breaks a rule (check_request.h) is refused by both implementations with the same InvalidField:
// thrown, or answered where the verb has a Reply; submissions have a Refusal each.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/activities.h"
#include "engine/controlling.h"
#include "engine/reading.h"
#include "engine/settings.h"
#include "engine/submitting.h"
#include "engine/workflows.h"
#include "engine/working.h"

namespace hapax {

// What became of the engine's work since it started, for /metrics.
struct EngineCounters {
  std::int64_t submitted = 0, deduplicated = 0, conflicts = 0;
  std::int64_t claimed = 0, completed = 0, failed_attempts = 0, leases_lost = 0;
  std::int64_t swept = 0, purged = 0;
  std::int64_t commits = 0;  // store calls made by the submit, claim and finish lanes
  std::int64_t store_failures = 0;
  std::int64_t waiting_claims = 0, waiting_results = 0;  // right now
};

class Engine : public SubmitVerbs,
               public WorkVerbs,
               public WorkflowVerbs,
               public ControlVerbs,
               public ReadVerbs,
               public SettingVerbs {
 public:
  // Lives as long as the engine.
  virtual Activities& activities() = 0;

  // Throws if the store does not answer.
  virtual void check_ready() = 0;
  virtual EngineCounters counters() = 0;
  virtual std::vector<QueueCount> queue_counts() = 0;
};

}  // namespace hapax
