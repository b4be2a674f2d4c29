#include "store/rules/close.h"

#include "core/transition.h"
#include "store/rules/new_execution.h"
#include "store/rules/step.h"
#include "store/rules/workflow.h"

namespace hapax::rules {

namespace {

void deliver(Rows& rows, const ExecutionId& run_id, std::int32_t step, const Execution& closed, Effects& effects) {
  auto run = rows.load(run_id);
  if (!run || run->kind != Kind::workflow || is_closed(run->status)) return;
  Event event = outcome_of(step, closed);
  number(*run, event, rows.now());
  rows.append(run->id, {event});
  wake(*run, effects, rows.now());
  rows.save(*run);
}

Event end_of(const Execution& run) {
  Event event;
  switch (run.status) {
    case Status::completed: event.kind = Event::Kind::completed; break;
    case Status::cancelled: event.kind = Event::Kind::cancelled; break;
    case Status::timed_out: event.kind = Event::Kind::timed_out; break;
    default: event.kind = Event::Kind::failed; break;
  }
  if (run.status == Status::completed) event.value = run.result;
  if (run.status == Status::failed) event.error = run.error;
  return event;
}

void end_history(Rows& rows, const ExecutionId& id) {
  auto run = rows.load(id);
  if (!run->run.continued_as) {
    Event event = end_of(*run);
    number(*run, event, rows.now());
    rows.append(run->id, {event});
    rows.save(*run);
  }
  rows.erase_waits(id);
}

void cancel_steps(Rows& rows, const ExecutionId& run, Effects& effects) {
  for (const ExecutionId& id : rows.steps_of(run)) {
    auto step = rows.load(id);
    if (step && !is_closed(step->status)) cancel_open(rows, *step, effects);
  }
}

bool has_run(Rows& rows, const Execution& execution) { return execution.parent && rows.exists(*execution.parent); }

bool is_unretained(Rows& rows, const Execution& closed) {
  return rows.policies().retention(closed) == Duration::zero() && !has_run(rows, closed);
}

// Its ledger entry goes with it, or stays as a tombstone if it has time left.
void erase(Rows& rows, const Execution& closed) {
  const LedgerEntry* entry = closed.identity ? rows.lock_entry(closed) : nullptr;
  if (entry && entry->owner == closed.id) {
    if (entry->expires_at && *entry->expires_at > rows.now()) {
      LedgerEntry buried = new_entry(closed, std::nullopt);
      buried.expires_at = entry->expires_at;
      buried.tombstone = Tombstone{closed.kind,   closed.type,       closed.queue,       closed.idempotency_key,
                                   closed.status, closed.created_at, *closed.finished_at};
      rows.put_entry(closed, buried);
    } else {
      rows.erase_entry(LedgerEntry(*entry));
    }
  }
  rows.erase(closed);
}

}  // namespace

std::optional<Execution> load_to_close(Rows& rows, const ExecutionId& id) {
  auto execution = rows.load_state(id);
  const bool may_go = execution && rows.policies().retention(*execution) == Duration::zero();
  return may_go ? rows.load(id) : execution;
}

std::optional<Execution> settle(Rows& rows, Execution execution, Effects& effects) {
  const bool closed = is_closed(execution.status);
  if (closed && !concerns_workflows(execution) && is_unretained(rows, execution)) {
    erase(rows, execution);
    return execution;
  }
  rows.save(execution);
  return closed && concerns_workflows(execution) ? after_close(rows, execution, effects) : std::nullopt;
}

std::optional<Execution> after_close(Rows& rows, const Execution& closed, Effects& effects) {
  if (closed.kind == Kind::workflow) {
    end_history(rows, closed.id);
    if (closed.status != Status::completed) cancel_steps(rows, closed.id, effects);
  }
  const bool answers = !closed.run.continued_as;  // otherwise the run that it continues as will
  if (closed.parent && answers) deliver(rows, *closed.parent, closed.step, closed, effects);
  if (closed.awaited && answers) {
    for (const Wait& wait : rows.waits_on(closed.id)) {
      rows.erase_wait(wait.run, wait.step);
      deliver(rows, wait.run, wait.step, closed, effects);
    }
  }
  if (!is_unretained(rows, closed)) return std::nullopt;
  auto stored = rows.load(closed.id);
  if (stored) erase(rows, *stored);
  return stored;
}

namespace {

void be_lost(Rows& rows, Execution& run) {
  Event event;
  event.kind = Event::Kind::stuck;
  event.error = run.error;
  number(run, event, rows.now());
  rows.append(run.id, {event});
  rows.save(run);
}

}  // namespace

Effects end_due(Rows& rows, const ExecutionId& id) {
  Effects effects;
  auto execution = load_to_close(rows, id);
  if (!execution) return effects;
  if (execution->kind == Kind::workflow) execution = rows.load(id);
  if (expire(*execution, rows.now())) {
    if (waits_for_resume(*execution)) return be_lost(rows, *execution), effects;
    effects.add_changed(*execution);
    settle(rows, *std::move(execution), effects);
  } else if (execution->status == Status::suspended && execution->due_at() && *execution->due_at() <= rows.now()) {
    wake_due(rows, rows.load(id).value(), effects);
  }
  return effects;
}

bool purge(Rows& rows, const ExecutionId& id) {
  const auto execution = rows.load(id);
  if (!execution || !is_closed(execution->status) || has_run(rows, *execution)) return false;
  erase(rows, *execution);
  remember_report(rows, *execution);
  return true;
}

void remember_report(Rows& rows, const Execution& purged) {
  const Time until = *purged.finished_at + kReportMemory;
  if (until <= rows.now() || purged.kind == Kind::workflow) return;
  if (const auto report = closing_report(purged)) rows.keep_report(*report, until);
}

}  // namespace hapax::rules
