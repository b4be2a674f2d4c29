#include "engine/backfill.h"

#include <fmt/format.h>

#include <map>

#include "core/field.h"

namespace hapax {

namespace {

// What is known of a firing.
struct Known {
  ActivityRun run;
  bool to_come = false;  // planned, and not yet in the ledger
};

using Book = std::map<Time, Known>;

Book known_of(const ActivityRecord& record, std::vector<ActivityRun> ledger) {
  Book book;
  for (ActivityRun& run : ledger) {
    if (run.cause == Cause::schedule) book[run.at] = {std::move(run)};
  }
  for (const PlannedRun& planned : record.pending) {
    book.try_emplace(planned.scheduled_for, Known{ledger_row(record, planned), true});
  }
  if (const auto& buffered = record.position.buffered) {
    book.try_emplace(buffered->scheduled_for, Known{ledger_row(record, *buffered), true});
  }
  return book;
}

// A stretch that is being compressed covers firings that are not planned yet.
bool will_be_compressed(const SchedulePosition& position, Time at) {
  const auto& missed = position.missed;
  return missed && missed->policy == MisfirePolicy::compress && !missed->dropped && at > position.handled_until &&
         at <= missed->until;
}

ActivityRun row_of(const ActivityRecord& record, Time at) {
  ActivityRun run;
  run.name_space = record.name_space;
  run.activity = record.id;
  run.occurrence = format_occurrence(at);
  run.at = at;
  run.disposition = Disposition::caught_up;
  run.workflow_id = activity_workflow_id(record.id, run.occurrence);
  run.why = "backfilled";
  return run;
}

ActivityRun to_be_compressed(const ActivityRecord& record, Time at) {
  ActivityRun run = row_of(record, at);
  run.disposition = Disposition::compressed;
  run.workflow_id = activity_workflow_id(record.id, format_occurrence(record.position.missed->until));
  run.why = "compressed into the run of " + format_occurrence(record.position.missed->until);
  return run;
}

std::string_view in_words(Disposition disposition) {
  switch (disposition) {
    case Disposition::ran: return "ran";
    case Disposition::skipped: return "was skipped";
    case Disposition::caught_up: return "was caught up";
    case Disposition::compressed: return "was compressed";
    case Disposition::duplicate: return "was a duplicate";
  }
  return {};
}

std::string said_of(const ActivityRun& run) {
  const std::string_view how = in_words(run.disposition);
  return run.why.empty() ? std::string(how) : fmt::format("{}: {}", how, run.why);
}

BackfilledFiring decide(ActivityRun mine, const Known* known, bool force) {
  if (!known || known->run.disposition == Disposition::skipped) return {std::move(mine), true};
  const Disposition before = known->run.disposition;
  const bool covered = before == Disposition::compressed || before == Disposition::caught_up;
  const bool own_id = known->run.workflow_id == mine.workflow_id;
  // A run that is still to start needs its id.
  if (!force || !covered || (own_id && known->to_come)) {
    BackfilledFiring duplicate{known->run};
    duplicate.run.disposition = Disposition::duplicate;
    duplicate.run.why = "before it " + said_of(known->run);
    return duplicate;
  }
  mine.why = "backfilled by force; before it " + said_of(known->run);
  return {std::move(mine), true, own_id};
}

}  // namespace

std::vector<BackfilledFiring> plan_backfill(const ActivityRecord& record, const Cron& cron, const TimeZone& zone,
                                            const Backfill& wanted, std::vector<ActivityRun> ledger) {
  Book book = known_of(record, std::move(ledger));
  std::vector<BackfilledFiring> firings;
  for (auto at = cron.next(wanted.from - Duration(1), zone); at && *at <= wanted.to; at = cron.next(*at, zone)) {
    if (firings.size() == Activities::kMaxBackfill) {
      throw InvalidField("/to",
                         fmt::format("there are more than {} firings in between; \"to\": \"{}\" would be the last "
                                     "of so many",
                                     Activities::kMaxBackfill, format_time(firings.back().run.at)));
    }
    if (will_be_compressed(record.position, *at)) book.try_emplace(*at, Known{to_be_compressed(record, *at), true});
    const auto known = book.find(*at);
    firings.push_back(decide(row_of(record, *at), known == book.end() ? nullptr : &known->second, wanted.force));
  }
  return firings;
}

}  // namespace hapax
