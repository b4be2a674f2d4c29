#include "engine/deliver.h"

#include <fmt/format.h>

#include <iterator>

#include "core/field.h"
#include "engine/start_run.h"

namespace hapax {

// A run that an event asks for.
struct Delivery::Asked {
  enum class Outcome : std::uint8_t {
    started,
    duplicate,
    conflict,
    taken
  };  // taken: by an event that only the ledger knows

  std::size_t event = 0;
  ActivityRun run;
  Outcome outcome = Outcome::started;
};

struct Delivery::Work {
  std::vector<EventReceipt> receipts;  // by event
  std::vector<Asked> asked;
  std::vector<ActivityRun> skipped;
  Reply<std::vector<EventReceipt>> reply;

  template <class Function>
  void guard(Function function) {
    try {
      function();
    } catch (...) {
      reply(std::current_exception());
    }
  }
};

namespace {

// Activities defined by other servers take part no later than this.
constexpr std::chrono::milliseconds kKnownFor{100};

constexpr std::int32_t kPage = 1000;
constexpr std::size_t kMaxWorkflowId = 255;

InvalidField too_long(const std::string& at, const ActivityRecord& record, const CloudEvent& event, std::size_t size) {
  const bool with_source = record.settings.event()->dedupe_by == DedupeBy::source_and_id;
  const bool source = with_source && event.source.size() > event.id.size();
  return {
      at + (source ? "/source" : "/id"),
      fmt::format("is too long: the workflow id \"activity-{}:{}\" would have {} bytes, and {} is the most. Nothing "
                  "was started",
                  record.id, with_source ? "{source}:{id}" : "{id}", size, kMaxWorkflowId)};
}

}  // namespace

// The inputs of two runs may differ although the event is the same: the activity has changed, or an attribute that does
// not count. So the events are compared: with the one in the input of the existing run, or if that is purged with the
// ledger's.
void Delivery::judge(Asked& asked, const SubmitResult& result) {
  using Outcome = Asked::Outcome;
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    if (refusal->code == Refusal::Code::store_corrupt) throw Failure(Failure::Code::corrupt, refusal->message);
    if (refusal->code != Refusal::Code::idempotency_conflict) throw InvalidField(refusal->pointer, refusal->message);
    const auto started_by = event_of_run(*refusal->existing);
    asked.outcome = !started_by                            ? Outcome::taken
                    : *started_by == asked.run.event->hash ? Outcome::duplicate
                                                           : Outcome::conflict;
  } else {
    asked.outcome = std::get<Receipt>(result).created ? Outcome::started : Outcome::duplicate;
  }
  if (asked.outcome == Outcome::started) return;
  asked.run.disposition = Disposition::duplicate;
  asked.run.why = asked.outcome == Outcome::conflict ? "another event of this id had started the workflow"
                                                     : "the workflow was there already";
}

void Delivery::tell(EventReceipt& receipt, const Asked& asked, const ActivityRun& row) {
  using Outcome = Asked::Outcome;
  Outcome outcome = asked.outcome;
  if (outcome == Outcome::taken) {
    outcome = row.event && row.event->hash == asked.run.event->hash ? Outcome::duplicate : Outcome::conflict;
  }
  auto& list = outcome == Outcome::started     ? receipt.started
               : outcome == Outcome::duplicate ? receipt.duplicates
                                               : receipt.conflicts;
  list.push_back(asked.run.workflow_id);
}

void Delivery::forget(const std::string& name_space) {
  std::lock_guard lock(mutex_);
  known_.erase(name_space);
}

std::shared_ptr<const Delivery::Listeners> Delivery::listeners(const std::string& name_space) {
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    const auto known = known_.find(name_space);
    if (known != known_.end() && now - known->second.at < kKnownFor) return known->second.listeners;
  }
  auto listeners = std::make_shared<Listeners>();
  ActivityFilter filter;
  filter.name_space = name_space;
  filter.by_event = true;
  filter.limit = kPage;
  for (;;) {
    const std::vector<ActivityRow> rows = starter_.rows().list(filter);
    for (const ActivityRow& row : rows) {
      ActivityRecord record = ActivityRecord::parse(row);
      if (record.settings.enabled) listeners->push_back(std::move(record));
    }
    if (rows.size() < static_cast<std::size_t>(kPage)) break;
    filter.after = rows.back().id;
  }
  std::lock_guard lock(mutex_);
  known_[name_space] = {listeners, now};
  return listeners;
}

void Delivery::deliver(const std::string& name_space, std::vector<CloudEvent> events,
                       Reply<std::vector<EventReceipt>> reply) {
  const auto listening = listeners(name_space);
  const Time now = starter_.now();
  auto work = std::make_shared<Work>();
  std::vector<SubmitRequest> requests;
  for (const CloudEvent& event : events) {
    work->receipts.push_back({event.id, event.id_assigned, {}, {}, {}});
    for (const ActivityRecord& record : *listening) {
      if (!matches(*record.settings.event(), event)) continue;
      ActivityRun run;
      run.name_space = name_space;
      run.activity = record.id;
      run.occurrence = event.occurrence(record.settings.event()->dedupe_by);
      run.cause = Cause::event;
      run.at = now;
      run.event = FiringEvent{event.id, event.source, event.hash()};
      if (record.position.paused()) {
        run.disposition = Disposition::skipped;
        run.why = "the activity was paused";
        work->skipped.push_back(std::move(run));
        continue;
      }
      run.workflow_id = activity_workflow_id(record.id, run.occurrence);
      if (run.workflow_id.size() > kMaxWorkflowId) {
        const std::string at = events.size() > 1 ? fmt::format("/{}", work->receipts.size() - 1) : "";
        throw too_long(at, record, event, run.workflow_id.size());
      }
      requests.push_back(run_request(record.id, record.settings, run.occurrence, {.event = &event}));
      work->asked.push_back({work->receipts.size() - 1, std::move(run)});
    }
  }
  work->reply = std::move(reply);
  starter_.start(name_space, std::move(requests), [this, work](Answer<std::vector<SubmitResult>> answer) {
    work->guard([&] {
      const std::vector<SubmitResult> results = std::move(answer).get();
      for (std::size_t i = 0; i < results.size(); ++i) judge(work->asked[i], results[i]);
      write_down(work);
    });
  });
}

// An event that was skipped in a pause and is delivered again has been made up for, if it was started now.
void Delivery::write_down(const std::shared_ptr<Work>& work) {
  std::vector<ActivityRun> runs;
  for (const Asked& asked : work->asked) runs.push_back(asked.run);
  std::move(work->skipped.begin(), work->skipped.end(), std::back_inserter(runs));
  const auto sent = std::make_shared<std::vector<ActivityRun>>(runs);
  starter_.record(std::move(runs), [this, work, sent](Answer<std::vector<ActivityRun>> recorded) {
    work->guard([&] {
      const std::vector<ActivityRun> rows = std::move(recorded).get();
      for (std::size_t i = 0; i < work->asked.size(); ++i) {
        tell(work->receipts[work->asked[i].event], work->asked[i], rows[i]);
      }
      std::vector<ActivityRun> made_up;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].disposition != Disposition::skipped || (*sent)[i].disposition != Disposition::ran) continue;
        made_up.push_back(std::move((*sent)[i]));
        made_up.back().disposition = Disposition::caught_up;
        made_up.back().why = "delivered again; before: " + rows[i].why;
      }
      starter_.record(std::move(made_up), [work](Answer<std::vector<ActivityRun>> again) {
        work->guard([&] {
          std::move(again).get();
          work->reply(std::move(work->receipts));
        });
      });
    });
  });
}

}  // namespace hapax
