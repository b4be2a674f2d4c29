// Store values for readers of a failed test: one line, only what differs from the default. GoogleTest prints them with
// these operators.
#pragma once

#include <ostream>
#include <string>

#include "store/store.h"

namespace hapax {

// "#12" for test_id(12), the UUID for any other.
std::string describe(const ExecutionId& id);
std::string describe(const LeaseToken& token);

std::ostream& operator<<(std::ostream& out, Kind kind);
std::ostream& operator<<(std::ostream& out, Status status);
std::ostream& operator<<(std::ostream& out, Reuse reuse);
std::ostream& operator<<(std::ostream& out, const ExecutionId& id);
std::ostream& operator<<(std::ostream& out, const Execution& execution);
std::ostream& operator<<(std::ostream& out, const Submission& submission);
std::ostream& operator<<(std::ostream& out, const SubmitOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const ClaimRequest& request);
std::ostream& operator<<(std::ostream& out, const ClaimOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const Extension& extension);
std::ostream& operator<<(std::ostream& out, const ExtendOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const Report& report);
std::ostream& operator<<(std::ostream& out, const FinishOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const ControlRequest& request);
std::ostream& operator<<(std::ostream& out, ControlOutcome::Kind kind);
std::ostream& operator<<(std::ostream& out, const ControlOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const Changed& closed);
std::ostream& operator<<(std::ostream& out, const Effects& effects);
std::ostream& operator<<(std::ostream& out, const Event& event);
std::ostream& operator<<(std::ostream& out, const Turn& turn);
std::ostream& operator<<(std::ostream& out, const TurnOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const SweepOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const PurgeOutcome& outcome);
std::ostream& operator<<(std::ostream& out, const QueueCount& count);
std::ostream& operator<<(std::ostream& out, const QueuePolicy& policy);
std::ostream& operator<<(std::ostream& out, const LedgerEntry& entry);
std::ostream& operator<<(std::ostream& out, const FoundIdentity& found);
std::ostream& operator<<(std::ostream& out, const SettingDocument& setting);
std::ostream& operator<<(std::ostream& out, Disposition disposition);
std::ostream& operator<<(std::ostream& out, const ActivityRow& row);
std::ostream& operator<<(std::ostream& out, const ActivityChange& change);
std::ostream& operator<<(std::ostream& out, const DueActivities& due);
std::ostream& operator<<(std::ostream& out, const ActivityRun& run);

}  // namespace hapax
