// The part of the engine's interface for activities: define, pause, trigger, backfill, read, and deliver events. See
// engine.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/activity.h"
#include "core/cloud_event.h"
#include "core/time.h"
#include "engine/reply.h"

namespace hapax {

struct ActivityView {
  std::string id;
  ActivitySettings settings;
  bool paused = false;
  std::optional<Time> paused_at;
  bool from_file = false;  // from the configuration file: cannot be changed over the API
  Time created_at, updated_at;
  // The next five firings of its schedule that have not fired, unless it is paused or not enabled.
  std::vector<Time> next;
  std::optional<Time> fired_ahead_until;  // the clock ran ahead: its schedule has fired up to then, in the future
  std::vector<ActivityRun> last;          // the last five firings, newest first
};

struct ActivitiesPage {
  std::vector<ActivityView> activities;  // by id; without `last`
  std::optional<std::string> next_cursor;
};

struct RunsPage {
  std::vector<ActivityRun> runs;  // newest first
  std::optional<std::string> next_cursor;
};

// The outcome of a manual trigger.
struct Triggered {
  std::string workflow_id;
  bool created = false;  // false: this request key was used before; this is its workflow
};

// The outcome of an event.
struct EventReceipt {
  std::string id;
  bool id_assigned = false;
  std::vector<std::string> started, duplicates, conflicts;  // workflow ids

  // It started nothing, and its sender should know: another event had that id.
  bool is_refused() const { return started.empty() && !conflicts.empty(); }
};

// The firings of a schedule to make up for: from `from` to `to`, both included.
struct Backfill {
  Time from, to;
  bool force = false;  // also those that a compressed or a caught-up run covers
};

class Activities {
 public:
  virtual ~Activities() = default;

  virtual std::optional<ActivityView> find(const std::string& name_space, const std::string& id) = 0;
  virtual ActivitiesPage list(const std::string& name_space, const std::string& after, std::int32_t limit) = 0;

  // Defines it, or changes its definition. Another expression or time zone takes effect now: nothing in the past fires.
  // Throws DecidedByFile if the configuration file has it, InvalidField for a bad id.
  virtual ActivityView put(const std::string& name_space, const std::string& id, const ActivitySettings& settings) = 0;
  // False if there was none. Its runs stay readable until their retention ends. Throws DecidedByFile.
  virtual bool remove(const std::string& name_space, const std::string& id) = 0;
  // Nothing if there is none. While it is paused, nothing fires; what passed during the pause follows the misfire
  // policy.
  virtual std::optional<ActivityView> set_paused(const std::string& name_space, const std::string& id, bool paused) = 0;

  // Nothing if there is neither the activity nor any run of it. `cursor` is the last page's. Throws InvalidField for a
  // bad one.
  virtual std::optional<RunsPage> runs(const std::string& name_space, const std::string& id, const std::string& cursor,
                                       std::int32_t limit) = 0;

  // Starts a run now, whatever the schedule says. With a request key, once for each key. Nothing if there is no such
  // activity.
  virtual void trigger(const std::string& name_space, const std::string& id,
                       const std::optional<std::string>& request_key, Reply<std::optional<Triggered>> reply) = 0;

  // Starts what the schedule would have fired and what did not run; oldest first. Returns a row for each firing: one
  // that ran, or that a compressed or caught-up run covers, is `duplicate`, and names the run. By force, covered ones
  // are started too, under their own ids, unless the run of that id is still open; not those that ran in time. Nothing
  // if there is no such activity. Throws InvalidField if it has no schedule, the times are in the wrong order or in the
  // future, or there are more than kMaxBackfill.
  static constexpr std::size_t kMaxBackfill = 1000;
  virtual void backfill(const std::string& name_space, const std::string& id, const Backfill& wanted,
                        Reply<std::optional<std::vector<ActivityRun>>> reply) = 0;

  // Starts the activities that match these events. The receipts are in their order. An event without an id is given
  // one. Throws InvalidField for one whose workflow id would be too long: then nothing was started.
  static constexpr std::size_t kMaxEvents = 1000;
  virtual void deliver(const std::string& name_space, std::vector<CloudEvent> events,
                       Reply<std::vector<EventReceipt>> reply) = 0;
};

}  // namespace hapax
