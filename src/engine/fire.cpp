#include "engine/fire.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include "engine/start_run.h"

namespace hapax {

namespace {

constexpr std::int32_t kMaxDue = 500;      // activities in one check
constexpr std::size_t kMaxFirings = 50;    // of one activity in one check
constexpr std::int32_t kRunsInView = 100;  // of one activity, newest first, that may still be open

// Another server's activities are not announced to this one, so it checks at least this often.
constexpr Duration kLongestPause{1000};

// The deciding server carries its decision out within this time, or others do.
constexpr Duration kLease{5000};

}  // namespace

void Schedules::start() {
  timer_.soon([this] { look(); });
}

void Schedules::due_by(Time time) {
  const auto delay = std::max(Duration(0), time - starter_.now());
  if (delay >= kLongestPause) return;
  const auto instant = std::chrono::steady_clock::now() + delay;
  std::lock_guard lock(mutex_);
  if (next_look_ && (next_look_->first <= instant || !timer_.cancel(*next_look_))) return;
  next_look_ = timer_.at(instant, [this] { look(); });
}

void Schedules::schedule(std::optional<Time> next_due) {
  auto delay = kLongestPause;
  if (next_due) delay = std::clamp(*next_due - starter_.now(), Duration(0), kLongestPause);
  std::lock_guard lock(mutex_);
  if (next_look_) timer_.cancel(*next_look_);
  next_look_ = timer_.after(delay, [this] { look(); });
}

void Schedules::look() {
  std::optional<Time> next_due;
  if (fires_ && !fires_()) return schedule(next_due);
  try {
    const DueActivities due = starter_.rows().due(kMaxDue);
    next_due = due.next_due;
    std::vector<Decided> decided = decide(due.rows);
    carry_out(decided);
    for (const Decided& each : decided) {
      if (each.next_due && (!next_due || *each.next_due < *next_due)) next_due = each.next_due;
    }
  } catch (const std::exception& failure) {
    ++failures_;
    next_due.reset();
    spdlog::warn("schedules: {}", failure.what());
  }
  schedule(next_due);
}

// Moves the positions of those that are due. Returns the ones that no other server has moved.
std::vector<Schedules::Decided> Schedules::decide(const std::vector<ActivityRow>& rows) {
  const Time now = starter_.now();
  std::vector<Decided> planned;
  std::vector<ActivityChange> changes;
  for (const ActivityRow& row : rows) {
    try {
      if (auto decided = plan(row, now)) {
        changes.push_back({decided->record.row(), false, 1});
        planned.push_back(*std::move(decided));
      }
    } catch (const Failure& failure) {
      ++failures_;
      spdlog::error("{}", failure.what());
    }
  }
  if (changes.empty()) return {};
  const std::vector<bool> changed = starter_.rows().change(changes);
  std::vector<Decided> mine;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (!changed[i]) continue;
    ++planned[i].record.revision;
    mine.push_back(std::move(planned[i]));
  }
  return mine;
}

std::optional<Schedules::Decided> Schedules::plan(const ActivityRow& row, Time now) {
  Decided decided{ActivityRecord::parse(row), now};
  ActivityRecord& record = decided.record;
  if (record.pending.empty()) {
    if (record.is_scheduled()) {
      const CronTrigger& trigger = *record.settings.cron();
      const auto cron = std::get<Cron>(Cron::parse(trigger.expression));
      const auto zone = TimeZone::find(trigger.timezone);
      if (!zone)
        throw Failure(Failure::Code::corrupt,
                      "the activity '" + record.id + "' is in a time zone that is not known here");
      record.open_run = open_run(record);
      Plan next =
          hapax::plan(trigger, cron, *zone, record.id, record.position, now, !record.open_run.empty(), kMaxFirings);
      record.position = std::move(next.next);
      record.pending = std::move(next.runs);
      decided.next_due = next.next_due;
    } else {
      decided.next_due.reset();
    }
  } else if (const CronTrigger* trigger = record.settings.cron()) {
    record.position.take_over(*trigger, now);
  }
  record.next_due = record.pending.empty() ? decided.next_due : std::optional(now + kLease);
  return decided;
}

// A run of this activity that is still open, manual or by the schedule. The one that was open at the last check is
// remembered: the ledger may have grown past it since.
std::string Schedules::open_run(const ActivityRecord& record) {
  if (record.settings.cron()->overlap == Overlap::allow) return "";
  if (!record.open_run.empty() && starter_.is_open(record.name_space, record.open_run)) return record.open_run;
  RunFilter filter;
  filter.name_space = record.name_space;
  filter.activity = record.id;
  filter.limit = kRunsInView;
  std::string last;
  for (const ActivityRun& run : starter_.rows().runs(filter)) {
    if (run.workflow_id.empty() || run.workflow_id == last) continue;
    if (starter_.is_open(record.name_space, run.workflow_id)) return run.workflow_id;
    last = run.workflow_id;
  }
  return "";
}

// The ledger first, then the runs, then the mark that it is done. Each of them may be repeated.
void Schedules::carry_out(std::vector<Decided>& decided) {
  std::vector<ActivityRun> ledger;
  std::map<std::string, std::vector<SubmitRequest>> starts;  // by namespace
  for (const auto& [record, next_due] : decided) {
    for (const PlannedRun& planned : record.pending) {
      ledger.push_back(ledger_row(record, planned));
      if (!planned.start) continue;
      starts[record.name_space].push_back(run_request(record.id, record.settings, ledger.back().occurrence,
                                                      {.scheduled_for = ledger.back().at, .window = planned.window}));
    }
  }
  if (ledger.empty()) return;
  await<std::vector<ActivityRun>>([&](auto reply) { starter_.record(std::move(ledger), std::move(reply)); });
  for (auto& [name_space, requests] : starts) {
    const auto results = await<std::vector<SubmitResult>>([&, &name = name_space, &these = requests](auto reply) {
      starter_.start(name, std::move(these), std::move(reply));
    });
    for (const SubmitResult& result : results) {
      if (const auto* refusal = std::get_if<Refusal>(&result)) spdlog::error("an activity's run: {}", refusal->message);
    }
  }
  std::vector<ActivityChange> done;
  for (auto& [record, next_due] : decided) {
    if (record.pending.empty()) continue;
    record.pending.clear();
    record.position.carried_out(starter_.now());
    record.next_due = next_due;
    done.push_back({record.row(), false, 1});
  }
  starter_.rows().change(done);
}

}  // namespace hapax
