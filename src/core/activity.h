// An activity: what to start, and the schedule or the events that start it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/hash.h"
#include "core/json.h"
#include "core/time.h"

namespace hapax {

// What becomes of firings that are later than the grace.
enum class MisfirePolicy : std::uint8_t { skip, catchup, compress };

// What becomes of a firing while a run of the same activity is still open.
enum class Overlap : std::uint8_t { allow, skip, buffer_one };

// What makes two events the same: the id alone, or source and id, as in CloudEvents.
enum class DedupeBy : std::uint8_t { id, source_and_id };

std::string_view to_string(MisfirePolicy policy);
std::optional<MisfirePolicy> parse_misfire_policy(std::string_view text);
std::string_view to_string(Overlap overlap);
std::optional<Overlap> parse_overlap(std::string_view text);
std::string_view to_string(DedupeBy dedupe_by);
std::optional<DedupeBy> parse_dedupe_by(std::string_view text);

constexpr std::int32_t kMaxCatchup = 1000;
constexpr std::size_t kMaxActivityTasks = 1000;
constexpr std::size_t kMaxActivityId = 128;  // in bytes: the workflow ids carry it
constexpr std::size_t kMaxWhere = 64;        // conditions of one event trigger

struct CronTrigger {
  std::string expression;
  std::string timezone = "UTC";
  MisfirePolicy misfire_policy = MisfirePolicy::skip;
  std::int32_t catchup_limit = 10;
  Duration misfire_grace{60'000};
  Overlap overlap = Overlap::allow;
  // Each firing is delayed by up to this long, the same firing always by the same, and never past the next one.
  Duration jitter{0};

  bool operator==(const CronTrigger&) const = default;
};

struct EventTrigger {
  // One condition on the event's data.
  struct Where {
    enum class Test : std::uint8_t { equals, prefix, exists };

    std::string pointer;  // into the event's data
    Test test = Test::exists;
    std::string value;  // equals: canonical JSON; prefix: a string's beginning; exists: "true" or "false"

    bool operator==(const Where&) const = default;
  };

  std::optional<std::string> type, source, subject;  // absent: any
  std::vector<Where> where;                          // all of them
  DedupeBy dedupe_by = DedupeBy::id;

  bool operator==(const EventTrigger&) const = default;
};

struct ActivitySettings {
  struct Workflow {
    std::string type;
    std::optional<std::string> input;  // canonical JSON
    std::optional<std::string> queue;

    bool operator==(const Workflow&) const = default;
  };
  struct Task {
    std::string type;
    std::optional<std::string> input;
    std::optional<std::string> queue;

    bool operator==(const Task&) const = default;
  };

  // A signal to a workflow that is there, whose payload is the event's data. For event triggers.
  struct Signal {
    std::string workflow_id;  // a template: see core/signal_target.h
    std::string name;

    bool operator==(const Signal&) const = default;
  };

  std::string name;  // for people; empty: the id is used
  bool enabled = true;
  std::variant<Workflow, std::vector<Task>, Signal> start;
  std::variant<CronTrigger, EventTrigger> trigger;
  // As given. For a schedule it always equals its misfire_policy; an event trigger has none.
  std::optional<MisfirePolicy> dedupe_key_strategy;
  bool from_code = false;  // a program declares it each time it starts

  bool operator==(const ActivitySettings&) const = default;

  // Throws InvalidField for a member that is missing, unknown or has a bad value: also for a cron expression or a time
  // zone that does not exist, and for a dedupe_key_strategy that differs from the misfire_policy. A dedupe_key_strategy
  // without a misfire_policy is the misfire_policy.
  static ActivitySettings parse(const Json& document, const std::string& at = "");

  // A JSON object that parse() reads back.
  std::string to_json() const;

  const CronTrigger* cron() const { return std::get_if<CronTrigger>(&trigger); }
  const EventTrigger* event() const { return std::get_if<EventTrigger>(&trigger); }
};

// Throws InvalidField (at the empty pointer) unless it is a valid activity id: a name of 1 to kMaxActivityId bytes
// without a colon. A colon separates it in a workflow id, so two activities never make the same one.
void check_activity_id(std::string_view id);

// The workflow id of a firing: of a schedule with the time as 2026-03-01T09:00:00+00:00, of an event with its id, or
// with its source and its id.
std::string activity_workflow_id(std::string_view activity, std::string_view occurrence);
std::string format_occurrence(Time scheduled_for);

// ---- the run ledger

enum class Disposition : std::uint8_t { ran, skipped, caught_up, compressed, duplicate };

std::string_view to_string(Disposition disposition);
std::optional<Disposition> parse_disposition(std::string_view text);

// The firings that one run covers.
struct Window {
  Time from, to;
  std::int64_t missed = 0;

  bool operator==(const Window&) const = default;
};

// What fired an activity.
enum class Cause : std::uint8_t { schedule, event, trigger };

std::string_view to_string(Cause cause);
std::optional<Cause> parse_cause(std::string_view text);

using EventHash = Hash<struct EventTag>;  // see CloudEvent::hash()

// The event that fired an activity, as the run ledger keeps it.
struct FiringEvent {
  std::string id;
  std::string source;
  EventHash hash;

  bool operator==(const FiringEvent&) const = default;
};

// What became of one firing of an activity: a row of the run ledger.
struct ActivityRun {
  std::string name_space;
  std::string activity;
  // format_occurrence(); or the event's id, or "source:id" if both identify it; or the name of a manual trigger.
  std::string occurrence;
  Cause cause = Cause::schedule;
  Time at;  // scheduled for; for an event or a manual trigger: when it arrived
  Disposition disposition = Disposition::ran;
  std::string workflow_id;  // the run that covers it; empty if none does
  std::optional<Window> window;
  std::optional<FiringEvent> event;  // absent in rows that were recorded before this was kept
  std::string why;                   // as text; may be empty
  Time recorded_at;                  // set by the store

  bool operator==(const ActivityRun&) const = default;
};

}  // namespace hapax
