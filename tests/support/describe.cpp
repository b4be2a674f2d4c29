#include "support/describe.h"

#include <string_view>

#include "support/task.h"

namespace hapax {

namespace {

std::string describe(Time time) { return format_time(time); }
std::string describe(Duration duration) { return format_duration(duration); }
std::string describe(const std::string& text) {
  return text.size() <= 60 ? text : text.substr(0, 60) + "… (" + std::to_string(text.size()) + " bytes)";
}
template <class Number>
  requires std::is_arithmetic_v<Number>
std::string describe(Number number) {
  return std::to_string(number);
}
template <class Tag>
std::string describe(const Hash<Tag>& hash) {
  return hash.to_string().substr(7, 8);
}
std::string describe(const LeaseSecret& secret) {
  return "secret " + std::to_string(secret.bytes[15] + 256 * secret.bytes[14]);
}
std::string describe(const AttemptError& error) { return error.type + "(" + error.message + ")"; }

template <class Value>
void show(std::ostream& out, std::string_view name, const Value& value) {
  out << ' ' << name << '=' << describe(value);
}
template <class Value>
void show(std::ostream& out, std::string_view name, const std::optional<Value>& value) {
  if (value) show(out, name, *value);
}
void flag(std::ostream& out, std::string_view name, bool value) {
  if (value) out << ' ' << name;
}

}  // namespace

std::string describe(const ExecutionId& id) {
  std::uint64_t n = 0;
  for (std::size_t i = 9; i < 16; ++i) n = n << 8 | id.bytes[i];
  return test_id(n) == id ? "#" + std::to_string(n) : id.to_string();
}

std::string describe(const LeaseToken& token) {
  return describe(token.execution) + "/" + std::to_string(token.attempt) + "/" + describe(token.secret);
}

std::ostream& operator<<(std::ostream& out, Kind kind) { return out << to_string(kind); }
std::ostream& operator<<(std::ostream& out, Status status) { return out << to_string(status); }
std::ostream& operator<<(std::ostream& out, Reuse reuse) { return out << to_string(reuse); }
std::ostream& operator<<(std::ostream& out, const ExecutionId& id) { return out << describe(id); }

std::ostream& operator<<(std::ostream& out, const Execution& e) {
  out << describe(e.id) << ' ' << e.kind << ' ' << e.name_space << '/' << e.queue << ' ' << e.type << ' ' << e.status;
  show(out, "input", e.input);
  show(out, "input_hash", e.input_hash);
  show(out, "key", e.idempotency_key);
  if (e.identity) {
    out << " identity=" << describe(e.identity->hash) << '(' << to_string(e.identity->strategy) << ", "
        << e.identity->scope.to_string() << ')';
  }
  show(out, "parent", e.parent);
  if (e.priority != 0) show(out, "priority", e.priority);
  show(out, "concurrency_key", e.concurrency_key);
  show(out, "max_attempts", e.max_attempts);
  if (e.retry != RetryPolicy{}) {
    out << " retry=" << describe(e.retry.initial) << 'x' << e.retry.factor << '<' << describe(e.retry.max);
  }
  show(out, "timeout", e.timeout);
  show(out, "deadline_at", e.deadline_at);
  show(out, "created_at", e.created_at);
  show(out, "run_at", e.run_at);
  out << " attempt=" << e.attempt << '/' << e.attempt_limit;
  show(out, "started_at", e.started_at);
  show(out, "finished_at", e.finished_at);
  show(out, "cancel_requested_at", e.cancel_requested_at);
  show(out, "cancel_by", e.cancel_by);
  show(out, "result", e.result);
  show(out, "error", e.error);
  for (const AttemptRecord& record : e.failed_attempts) {
    out << " failed_attempt={" << record.attempt << ' ' << record.worker << ' ' << describe(record.started_at) << ".."
        << describe(record.ended_at) << ' ' << describe(record.error) << ' ' << describe(record.secret)
        << (record.reported ? " reported}" : "}");
  }
  if (!e.worker.empty()) show(out, "worker", e.worker);
  show(out, "lease", e.lease_secret);
  show(out, "lease_expires_at", e.lease_expires_at);
  show(out, "attempt_ends_by", e.attempt_ends_by);
  if (e.step != 0) out << " step=" << e.step << " of " << e.parent_workflow_id;
  flag(out, "awaited", e.awaited);
  if (e.kind == Kind::workflow) {
    out << " events=" << e.run.events << " seen=" << e.run.seen << " steps=" << e.run.steps << " stuck=" << e.run.stuck;
    show(out, "wake_at", e.run.wake_at);
    show(out, "continued_as", e.run.continued_as);
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Submission& s) {
  const Execution& e = s.execution;
  out << describe(e.id) << ' ' << e.name_space << '/' << e.queue << ' ' << e.type << ' ' << s.reuse;
  show(out, "input", e.input);
  show(out, "key", e.idempotency_key);
  if (e.identity) out << " identity=" << describe(e.identity->hash) << '(' << to_string(e.identity->strategy) << ')';
  show(out, "ttl", s.idempotency_ttl);
  if (e.priority != 0) show(out, "priority", e.priority);
  show(out, "run_at", s.run_at);
  if (s.delay != Duration::zero()) show(out, "delay", s.delay);
  show(out, "deadline", s.deadline);
  show(out, "deadline_at", e.deadline_at);
  show(out, "timeout", e.timeout);
  if (e.max_attempts != 3) show(out, "max_attempts", e.max_attempts);
  show(out, "concurrency_key", e.concurrency_key);
  show(out, "parent", e.parent);
  flag(out, "dry_run", s.dry_run);
  if (s.run_here) out << " run_here=" << describe(s.run_here->lease) << ' ' << describe(s.run_here->secret);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Changed& c) {
  return out << describe(c.id) << " of " << c.name_space << '/' << c.queue << ' ' << c.type;
}

std::ostream& operator<<(std::ostream& out, const Effects& e) {
  for (const Changed& closed : e.closed) out << " closed " << closed;
  for (const Changed& ready : e.ready) out << " ready " << ready;
  show(out, "next_due", e.next_due);
  return out;
}

std::ostream& operator<<(std::ostream& out, const SubmitOutcome& o) {
  constexpr std::string_view kWords[] = {"created", "duplicate", "conflict", "id_taken"};
  out << kWords[static_cast<int>(o.kind)];
  flag(out, "claimed", o.claimed);
  flag(out, "purged", o.purged);
  flag(out, "omitted", o.omitted);
  show(out, "expires_at", o.expires_at);
  show(out, "superseded", o.superseded);
  out << o.effects;
  return out << " execution={" << o.execution << '}';
}

std::ostream& operator<<(std::ostream& out, const ClaimRequest& r) {
  out << r.name_space << '/';
  for (const std::string& queue : r.queues) out << queue << ',';
  flag(out, "tasks", r.tasks);
  flag(out, "workflows", r.workflows);
  out << " limit=" << r.limit << " worker=" << r.worker << " lease=" << describe(r.lease);
  return out << ' ' << describe(r.secret) << (r.repeatable ? " repeatable" : "");
}

std::ostream& operator<<(std::ostream& out, const ClaimOutcome& o) {
  out << o.executions.size() << " claimed";
  show(out, "next_at", o.next_at);
  for (const Execution& execution : o.executions) out << "\n      {" << execution << '}';
  return out;
}

std::ostream& operator<<(std::ostream& out, const Extension& e) {
  out << describe(e.token) << " lease=" << describe(e.lease);
  return e.name_space.empty() ? out : out << " of " << e.name_space;
}

std::ostream& operator<<(std::ostream& out, const ExtendOutcome& o) {
  out << (o.ok ? "ok" : "lost");
  flag(out, "cancel_requested", o.cancel_requested);
  show(out, "lease_expires_at", o.lease_expires_at);
  return out << o.effects;
}

std::ostream& operator<<(std::ostream& out, const Report& r) {
  out << describe(r.token);
  if (!r.name_space.empty()) out << " of " << r.name_space;
  if (const auto* completed = std::get_if<Report::Completed>(&r.outcome)) {
    return out << " completed " << completed->result.value_or("(nothing)");
  }
  if (const auto* snoozed = std::get_if<Report::Snoozed>(&r.outcome)) {
    return out << " snoozed for " << format_duration(snoozed->by);
  }
  const auto& failed = std::get<Report::Failed>(r.outcome);
  if (failed.retry_after) out << " later";
  return out << " failed " << describe(failed.error) << (failed.retryable ? " retryable" : " final");
}

std::ostream& operator<<(std::ostream& out, const FinishOutcome& o) {
  if (!o.accepted) return out << "lost";
  out << "accepted " << o.status << ' ' << o.name_space << '/' << o.queue;
  show(out, "run_at", o.run_at);
  if (o.purged) out << " purged={" << *o.purged << '}';
  return out << o.effects;
}

std::ostream& operator<<(std::ostream& out, const ControlRequest& r) {
  constexpr std::string_view kWords[] = {"cancel ", "retry ", "resume ", "fork ", "signal "};
  return out << kWords[static_cast<int>(r.action)] << r.workflow_id.value_or(describe(r.target)) << " in "
             << r.name_space << " under " << r.request_key << " for " << describe(r.request_ttl);
}

std::ostream& operator<<(std::ostream& out, ControlOutcome::Kind kind) {
  constexpr std::string_view kWords[] = {"done",     "not_found",    "not_retryable", "identity_taken",
                                         "not_open", "no_such_step", "failed_before", "key_conflict"};
  return out << kWords[static_cast<int>(kind)];
}

std::ostream& operator<<(std::ostream& out, const ControlOutcome& o) {
  out << o.kind;
  flag(out, "replayed", o.replayed);
  flag(out, "changed", o.changed);
  out << " status=" << o.status << " before=" << o.before;
  out << o.effects;
  show(out, "other", o.other);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Event& e) {
  out << e.no << ' ' << to_string(e.kind) << " step=" << e.step << " name=" << e.name << " at=" << describe(e.at);
  show(out, "key", e.key);
  show(out, "execution", e.execution);
  show(out, "until", e.until);
  if (e.status) out << " status=" << *e.status;
  show(out, "value", e.value);
  if (e.error) out << " error=" << describe(*e.error);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Turn& t) {
  constexpr std::string_view kEnds[] = {"suspended", "unfinished", "completed", "failed", "stuck", "continued"};
  out << describe(t.token) << " seen=" << t.seen << ' ' << kEnds[t.end.index()];
  if (t.step) out << "\n        with the end of {" << *t.step << '}';
  for (const Event& event : t.events) out << "\n        {" << event << '}';
  for (const Turn::Start& start : t.starts) {
    out << "\n        step " << start.step << ": " << start.submission;
    if (start.begun) out << (start.begun->completed ? " begun and completed" : " begun");
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const TurnOutcome& o) {
  if (o.step) out << "step {" << *o.step << "} ";
  if (!o.accepted) return out << "lost" << o.effects;
  return out << "accepted " << o.status << o.effects;
}

std::ostream& operator<<(std::ostream& out, const SweepOutcome& o) {
  out << "swept" << o.effects;
  flag(out, "more", o.more);
  return out;
}

std::ostream& operator<<(std::ostream& out, const PurgeOutcome& o) {
  out << o.executions << " executions, " << o.identities << " identities, " << o.requests << " requests";
  flag(out, "more", o.more);
  return out;
}

std::ostream& operator<<(std::ostream& out, const QueueCount& c) {
  out << c.name_space << '/' << c.queue << " pending=" << c.pending << " running=" << c.running;
  show(out, "oldest_run_at", c.oldest_run_at);
  return out;
}

std::ostream& operator<<(std::ostream& out, const QueuePolicy& p) {
  flag(out, "paused", p.paused);
  if (p.rate_limit) out << " rate=" << format_rate(*p.rate_limit) << " burst=" << p.rate_limit->burst;
  show(out, "max_running", p.max_running);
  if (p.concurrency_limit != 1) show(out, "concurrency_limit", p.concurrency_limit);
  show(out, "cancel_grace", p.cancel_grace);
  show(out, "retention", p.retention);
  return out;
}

std::ostream& operator<<(std::ostream& out, const LedgerEntry& e) {
  out << describe(e.identity.hash) << '(' << to_string(e.identity.strategy) << ", " << e.identity.scope.to_string()
      << ')' << " in " << e.name_space << " owner=" << describe(e.owner) << " input_hash=" << describe(e.input_hash);
  show(out, "created_at", e.created_at);
  show(out, "expires_at", e.expires_at);
  if (e.tombstone) {
    out << " tombstone={" << e.tombstone->kind << ' ' << e.tombstone->type << ' ' << e.tombstone->queue << ' '
        << e.tombstone->status;
    show(out, "key", e.tombstone->idempotency_key);
    show(out, "created_at", e.tombstone->created_at);
    show(out, "finished_at", e.tombstone->finished_at);
    out << '}';
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const FoundIdentity& f) {
  out << f.entry << (f.live ? " live" : " dead");
  show(out, "dies_at", f.expires_at);
  if (f.owner) out << " owner={" << *f.owner << '}';
  return out;
}

std::ostream& operator<<(std::ostream& out, const SettingDocument& s) {
  return out << s.name_space << (s.kind == SettingDocument::Kind::queue ? " queue " : " type ") << s.name << ": "
             << s.document;
}

std::ostream& operator<<(std::ostream& out, Disposition disposition) { return out << to_string(disposition); }

std::ostream& operator<<(std::ostream& out, const ActivityRow& r) {
  out << r.name_space << '/' << r.id << " revision=" << r.revision;
  flag(out, "by_event", r.by_event);
  show(out, "next_due", r.next_due);
  return out << ' ' << describe(r.document);
}

std::ostream& operator<<(std::ostream& out, const ActivityChange& c) {
  return out << (c.remove ? "remove " : "store ") << c.row;
}

std::ostream& operator<<(std::ostream& out, const DueActivities& d) {
  out << d.rows.size() << " due";
  show(out, "next_due", d.next_due);
  for (const ActivityRow& row : d.rows) out << "\n      {" << row << '}';
  return out;
}

std::ostream& operator<<(std::ostream& out, const ActivityRun& r) {
  constexpr std::string_view kCauses[] = {"schedule", "event", "trigger"};
  out << r.name_space << '/' << r.activity << ' ' << r.occurrence << " by " << kCauses[static_cast<int>(r.cause)]
      << " at " << describe(r.at) << ' ' << r.disposition;
  if (!r.workflow_id.empty()) show(out, "workflow_id", r.workflow_id);
  if (r.window) {
    out << " window=" << describe(r.window->from) << ".." << describe(r.window->to) << '(' << r.window->missed << ')';
  }
  if (!r.why.empty()) show(out, "why", r.why);
  show(out, "recorded_at", r.recorded_at);
  return out;
}

}  // namespace hapax
