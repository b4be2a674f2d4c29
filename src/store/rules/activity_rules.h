// What every store decides about activities, decided once.
#pragma once

#include "core/failure.h"
#include "store/activity_rows.h"

namespace hapax {

enum class ActivityVerdict : std::uint8_t {
  apply,  // the revision is the current one
  done,   // nothing to do: it is as the change wants it. So it is where a change is sent again whose answer was lost
  stale   // another writer was faster
};

inline std::int64_t next_revision(const ActivityChange& change) {
  return change.row.revision == 0 ? change.first_revision : change.row.revision + 1;
}

inline ActivityVerdict judge(const ActivityChange& change, const ActivityRow* stored) {
  const bool current = change.row.revision == (stored ? stored->revision : 0);
  if (change.remove) {
    if (!stored) return ActivityVerdict::done;
    return current ? ActivityVerdict::apply : ActivityVerdict::stale;
  }
  if (current) return ActivityVerdict::apply;
  ActivityRow wanted = change.row;
  wanted.revision = next_revision(change);
  return stored && *stored == wanted ? ActivityVerdict::done : ActivityVerdict::stale;
}

// Whether a row of the ledger is replaced by what is to be recorded of the same firing.
inline bool gives_way(Disposition stored, Disposition recorded) {
  const bool did_not_run_itself = stored == Disposition::skipped || stored == Disposition::compressed;
  return did_not_run_itself && recorded == Disposition::caught_up;
}

// Throws Failure::misuse for a cursor that belongs to no namespace.
inline void check_filter(const ActivityFilter& filter) {
  if (filter.name_space || filter.after.empty()) return;
  throw Failure(Failure::Code::misuse,
                "activities of all namespaces cannot be listed from a cursor on: name a namespace");
}

}  // namespace hapax
