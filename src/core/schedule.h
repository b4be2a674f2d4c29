// What a schedule has to do at an instant: pure planning, from how far it has come and what time it is.
//
// - A firing is due at its time plus its jitter. It is missed if it is looked at later than the grace after that, or
//   fell due while the activity was paused.
// - One outage is one stretch of missed firings. What is late is settled by the first look after the outage. Firings
//   that fall due while servers are still handling it wait behind it and then run, however late that is.
// - Each firing gets exactly one row of the ledger, however many looks that takes, in the order of their times; a
//   buffered one gets its row when it is started.
// - What depends on the moment at which servers look is settled first-come: a single firing by the ledger, in which the
//   first row holds; a stretch of missed firings that is caught up or compressed by the position, which must be stored
//   before any of its rows is recorded. The plan sees to that: the look that finds such a stretch plans no row of it,
//   and asks for another look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/activity.h"
#include "core/cron.h"
#include "core/json.h"
#include "core/time.h"
#include "core/time_zone.h"

namespace hapax {

// A schedule that is behind is still being handled while servers check it at least this often, or as often as its grace
// if that is longer. After a longer silence lateness is decided again: no server was running, which is another outage.
constexpr Duration kLongestSilence = std::chrono::minutes(1);

struct PlannedRun {
  Time scheduled_for;
  Disposition disposition = Disposition::ran;
  bool start = false;            // start the workflow of this firing
  std::string workflow_id;       // its own run, or the one it is compressed into; empty if none
  std::optional<Window> window;  // of a compressed run that is started
  std::string why;

  bool operator==(const PlannedRun&) const = default;
};

// The position of a schedule.
struct SchedulePosition {
  // A stretch of missed firings that are caught up or compressed, and how much of it is done.
  struct Missed {
    MisfirePolicy policy = MisfirePolicy::compress;
    Time from, until;          // its first and its last firing
    Time caught_up_from;       // catchup: those before it are skipped
    std::int64_t counted = 0;  // how many of its firings are handled
    bool dropped = false;      // compress: a run was open, so they are all skipped

    bool operator==(const Missed&) const = default;
  };

  // There were missed firings, or more was due than one check could handle. Servers have been handling it since then:
  // the first check decides what is late, and firings that became due up to `attended_until` had to wait.
  struct Behind {
    Time since, attended_until;

    bool operator==(const Behind&) const = default;
  };

  // The schedule that was in force until a change, if some of its firings have no row yet: they are skipped.
  struct Former {
    std::string expression, timezone;
    Time handled_until, until;

    bool operator==(const Former&) const = default;
  };

  Time handled_until;                          // every firing up to this one has its row, or is buffered
  std::optional<Time> paused_from, paused_to;  // the last pause; without an end, it lasts
  std::optional<Missed> missed;
  std::optional<PlannedRun> buffered;  // to start as soon as no run is open
  std::optional<Behind> behind;
  std::optional<Former> former;

  bool operator==(const SchedulePosition&) const = default;

  bool paused() const { return paused_from && !paused_to; }
  void pause(Time now);    // does nothing if it is paused
  void unpause(Time now);  // does nothing if it is not
  // A server takes over a plan that another one did not carry out.
  void take_over(const CronTrigger& trigger, Time now);
  // The plan is carried out, however long that took.
  void carried_out(Time now);
  // Call it before begin_anew() when another schedule follows. Firings of this one that were not handled get rows as
  // skipped. While the rows of an earlier change are not all written, a further change adds none.
  void leave(const CronTrigger& trigger, Time now);
  // Continues from there, with another expression or time zone. What is buffered stays; a half-compressed stretch is
  // closed, and its run is started with what it has. Needs the activity's id.
  void begin_anew(std::string_view activity_id, Time from);

  // A JSON object, and back. Throws InvalidField.
  std::string to_json() const;
  static SchedulePosition parse(const Json& document, const std::string& at = "");
};

struct Plan {
  std::vector<PlannedRun> runs;  // to be recorded, then started, oldest first
  SchedulePosition next;         // to be stored after that
  std::optional<Time> next_due;  // when to check next, after `next` is stored; absent: never
};

// Plans at most `limit` rows, which must not be 0. `previous_open`: a run of this activity is open at this moment; what
// the plan itself starts counts as open, too. While the schedule is paused nothing is planned.
//
// Overlap applies to every start, including caught-up and compressed ones. `skip`: the firing is skipped. `buffer_one`:
// one waits until no run is open, and further ones are skipped.
Plan plan(const CronTrigger& trigger, const Cron& cron, const TimeZone& zone, std::string_view activity_id,
          const SchedulePosition& position, Time now, bool previous_open, std::size_t limit);

// How long a firing is delayed: from 0 to less than trigger.jitter, always the same for the same firing, and never past
// the next one.
Duration jitter_of(const CronTrigger& trigger, const Cron& cron, const TimeZone& zone, std::string_view activity_id,
                   Time scheduled_for);

}  // namespace hapax
