// What a store keeps of activities: definitions, schedule positions, and the run ledger. Part of the store contract:
// see store.h.
//
// Nothing here is one transaction with the workflows that activities start, and need not be. A decision is recorded
// first, under the firing's own name, and the first one recorded holds; then the workflow is started under its
// deterministic id; then the schedule moves on. A server that finds this half done does the same again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/activity.h"
#include "core/time.h"

namespace hapax {

struct ActivityRow {
  std::string name_space;
  std::string id;
  std::string document;          // definition and position: a JSON object that the store does not look into
  bool by_event = false;         // started by events, not by a schedule
  std::optional<Time> next_due;  // its schedule is looked at then; absent: never
  std::int64_t revision = 0;     // counted by the store

  bool operator==(const ActivityRow&) const = default;
};

struct ActivityChange {
  ActivityRow row;                  // its revision: the one it replaces; 0: there must be none of that id
  bool remove = false;              // instead of storing it. Its runs stay until they are purged
  std::int64_t first_revision = 1;  // of a new one; never one that a removed activity of that id may have had
};

struct DueActivities {
  std::vector<ActivityRow> rows;  // next_due is not after now; the earliest first, then by namespace and id
  std::optional<Time> next_due;   // of the earliest that is not among them

  bool operator==(const DueActivities&) const = default;
};

struct ActivityFilter {
  std::optional<std::string> name_space;  // absent: all
  std::optional<bool> by_event;
  std::string after;  // the cursor: only ids after this one, in that namespace. Needs a namespace
  std::int32_t limit = 100;
};

struct RunFilter {
  std::string name_space;
  std::string activity;
  // The cursor: only what comes after this one, in the order of list().
  struct Position {
    Time at;
    std::string occurrence;
  };
  std::optional<Position> after;
  std::int32_t limit = 100;
};

class ActivityRows {
 public:
  virtual ~ActivityRows() = default;

  virtual std::optional<ActivityRow> find(const std::string& name_space, const std::string& id) = 0;
  virtual std::vector<ActivityRow> list(const ActivityFilter& filter) = 0;  // by namespace and id

  // Stores, or removes, each whose revision is the current one. Says for each whether it did. One that was done already
  // is: it was sent again, and the row is as it wanted it, one revision on; or is gone, where it was to be removed.
  virtual std::vector<bool> change(std::span<const ActivityChange> changes) = 0;

  // Costs what is due, however many there are.
  virtual DueActivities due(std::int32_t limit) = 0;

  // Records each run unless its firing is in the ledger already, and answers with what the ledger says now. A row that
  // says `skipped` or `compressed` gives way to one that says `caught_up`: it was made up for.
  virtual std::vector<ActivityRun> record(std::span<const ActivityRun> runs) = 0;

  // Newest first: by `at`, then by occurrence, both descending.
  virtual std::vector<ActivityRun> runs(const RunFilter& filter) = 0;

  // Deletes at most `limit` rows of the ledger that were recorded before then. Returns how many.
  virtual std::int64_t purge_runs(Time before, std::int32_t limit) = 0;
};

}  // namespace hapax
