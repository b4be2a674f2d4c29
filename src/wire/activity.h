// Activities, their runs and the outcomes of events as JSON, both ways. Readers throw Failure::corrupt for what does
// not have the documented shape.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/json_writer.h"
#include "engine/activities.h"

namespace hapax::wire {

// {"id", the members of its settings,
// "paused","paused_at","from_file","created_at","updated_at","next":[times],"fired_ahead_until","last":[runs]}. One
// without a name is called by its id.
void write_activity(JsonWriter& out, const ActivityView& activity);
ActivityView read_activity(const Json& document);

// {"activities":[…],"next_cursor"}: each without its "last".
void write_activities(JsonWriter& out, const ActivitiesPage& page);
ActivitiesPage read_activities(const Json& document);

// {"workflow_id", "scheduled_for" or "event_id","event_source" or "triggered_at",
// "disposition","window","why","recorded_at"}. Which activity it is a run of is said around it. Of an event it is not
// told when it came, but when it was recorded; nor its hash.
void write_run(JsonWriter& out, const ActivityRun& run);
ActivityRun read_run(const Json& document);

// {"runs":[…]}, and with its "next_cursor" if it is a page.
void write_runs(JsonWriter& out, std::span<const ActivityRun> runs);
void write_runs(JsonWriter& out, const RunsPage& page);
RunsPage read_runs(const Json& document);

// {"workflow_id","created","idempotency_replayed"}
void write_triggered(JsonWriter& out, const Triggered& triggered);
Triggered read_triggered(const Json& document);

// {"events":[{"id","id_assigned","started","duplicates","conflicts"}]}
void write_event_receipts(JsonWriter& out, std::span<const EventReceipt> receipts);
// The array alone.
void write_event_array(JsonWriter& out, std::span<const EventReceipt> receipts);
std::vector<EventReceipt> read_event_receipts(const Json& document);

// The requests: {"from","to","force"}, and events in the JSON batch format.
std::string write_backfill(const Backfill& wanted);
std::string write_events(std::span<const CloudEvent> events);

}  // namespace hapax::wire
