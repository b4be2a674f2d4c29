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

// What becomes of firings that come later than the grace after their time.
enum class MisfirePolicy : std::uint8_t { skip, catchup, compress };

// What becomes of a firing while a run of the same activity is still open.
enum class Overlap : std::uint8_t { allow, skip, buffer_one };

// What makes two events the same: the id alone, or source and id, as CloudEvents has it.
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
constexpr std::size_t kMaxWhere = 64;        // demands of one event trigger

struct CronTrigger {
  std::string expression;
  std::string timezone = "UTC";
  MisfirePolicy misfire_policy = MisfirePolicy::skip;
  std::int32_t catchup_limit = 10;
  Duration misfire_grace{60'000};
  Overlap overlap = Overlap::allow;
  // Each firing is held back by up to this long, always by the same for the same firing, and never past the next one.
  Duration jitter{0};

  bool operator==(const CronTrigger&) const = default;
};

struct EventTrigger {
  // One demand on the event's data.
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

  std::string name;  // for people; empty if none is given: the id stands for it
  bool enabled = true;
  std::variant<Workflow, std::vector<Task>> start;
  std::variant<CronTrigger, EventTrigger> trigger;
  // As it was given. A schedule's is always its misfire_policy; an event trigger has none that it could decide.
  std::optional<MisfirePolicy> dedupe_key_strategy;

  bool operator==(const ActivitySettings&) const = default;

  // Throws InvalidField for a member that is missing, unknown or has a bad value: also a cron expression or a time zone
  // that does not exist, and a dedupe_key_strategy that is not the misfire_policy. A dedupe_key_strategy without a
  // misfire_policy is the misfire_policy.
  static ActivitySettings parse(const Json& document, const std::string& at = "");

  // A JSON object that parse() reads back.
  std::string to_json() const;

  const CronTrigger* cron() const { return std::get_if<CronTrigger>(&trigger); }
  const EventTrigger* event() const { return std::get_if<EventTrigger>(&trigger); }
};

// Throws InvalidField (at the empty pointer) unless it can be an activity's id: a name of 1 to kMaxActivityId bytes
// without a colon. The colon ends it in a workflow id, so that two activities never make the same one.
void check_activity_id(std::string_view id);

// The workflow id of a firing: of a schedule with the time as 2026-03-01T09:00:00+00:00, of an event with its id, or
// with its source and its id.
std::string activity_workflow_id(std::string_view activity, std::string_view occurrence);
std::string format_occurrence(Time scheduled_for);

// ---- the run ledger

enum class Disposition : std::uint8_t { ran, skipped, caught_up, compressed, duplicate };

std::string_view to_string(Disposition disposition);
std::optional<Disposition> parse_disposition(std::string_view text);

// The firings that one run stands for.
struct Window {
  Time from, to;
  std::int64_t missed = 0;

  bool operator==(const Window&) const = default;
};

// What fired an activity.
enum class Cause : std::uint8_t { schedule, event, trigger };

std::string_view to_string(Cause cause);
std::optional<Cause> parse_cause(std::string_view text);

using EventHash = Hash<struct EventTag>;  // of what makes an event this one and no other: see CloudEvent::hash()

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
  // format_occurrence(); or the event's id, or "source:id" where that is what makes it the same; or what a trigger by
  // hand is called.
  std::string occurrence;
  Cause cause = Cause::schedule;
  Time at;  // scheduled for; of an event or a trigger by hand: when it came
  Disposition disposition = Disposition::ran;
  std::string workflow_id;  // that stands for it; empty if none does
  std::optional<Window> window;
  std::optional<FiringEvent> event;  // absent in rows that were recorded before it was kept
  std::string why;                   // in words; may be empty
  Time recorded_at;                  // the store's to give

  bool operator==(const ActivityRun&) const = default;
};

}  // namespace hapax
