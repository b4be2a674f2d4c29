// Activities, their runs and the outcomes of events, as text and tables.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "cli/paint.h"
#include "cli/table.h"
#include "engine/activities.h"

namespace hapax {

// "0 9 * * * Europe/Berlin", "event order.paid from /shop".
std::string trigger_in_words(const ActivitySettings& settings);

// "workflow report", "3 tasks".
std::string start_in_words(const ActivitySettings& settings);

// When its schedule fires next: "in 5m", "paused", "off", or "-" for one that waits for events.
Cell next_in_words(const ActivityView& activity, Time now);

Cell disposition_cell(const ActivityRun& run);

// One per line, in the order given: what fired it, its disposition, the workflow, and why.
Table run_table(std::span<const ActivityRun> runs);

// The whole activity, with its next and its last firings.
std::string render_activity(const ActivityView& activity, Time now, const Paint& paint,
                            std::optional<std::size_t> width);

// A line for each workflow of an event, or one that says that no activity matches.
std::string describe_receipt(const EventReceipt& receipt);

// Throws CommandError unless it is a valid activity id.
void require_activity_id(const std::string& id);

CommandError activity_not_found(const std::string& id);

}  // namespace hapax
