#include "wire/write_answer.h"

#include "core/lease.h"
#include "core/ledger.h"
#include "core/notes.h"
#include "wire/error_code.h"
#include "wire/event.h"
#include "wire/shown_fields.h"

namespace hapax::wire {

namespace {

void time_member(JsonWriter& out, std::string_view name, const std::optional<Time>& time) {
  out.key(name);
  time ? out.string(format_time(*time)) : out.null();
}

void string_member(JsonWriter& out, std::string_view name, const std::optional<std::string>& text) {
  out.key(name);
  text ? out.string(*text) : out.null();
}

void write_names(JsonWriter& out, const Execution& execution) {
  out.key("id").string(execution.id.to_string());
  out.key("kind").string(to_string(execution.kind));
  out.key("namespace").string(execution.name_space);
  out.key("type").string(execution.type);
  out.key("queue").string(execution.queue);
  out.key("status").string(to_string(execution.status));
  string_member(out, "idempotency_key", execution.idempotency_key);
  if (execution.kind == Kind::workflow) string_member(out, "workflow_id", execution.idempotency_key);
}

void write_place_in_workflow(JsonWriter& out, const Execution& execution) {
  if (!execution.parent) return;
  out.key("parent_workflow_id").string(execution.parent_workflow_id);
  out.key("parent").string(execution.parent->to_string());
  out.key("step").integer(execution.step);
  if (execution.kind == Kind::task) {
    out.key("name").string(step_name(*execution.parent, execution.type, execution.step));
  }
}

void write_run(JsonWriter& out, const RunState& run) {
  fields(WriteShown(out), run);
  if (run.stuck > 0) out.key("stuck_turns").integer(run.stuck);
}

void write_notes(JsonWriter& out, const Execution& execution, bool with_log) {
  const auto notes = read_notes(execution);
  if (!notes) return;
  if (notes->progress) out.key("progress").raw(*notes->progress);
  if (!with_log || notes->log.empty()) return;
  out.key("log").begin_object().key("attempt").integer(notes->attempt).key("lines").begin_array();
  for (const std::string& line : notes->log) out.string(line);
  out.end_array().key("dropped").integer(notes->dropped).end_object();
}

void write_match(JsonWriter& out, const Match& match) {
  out.begin_object();
  out.key("strategy").string(to_string(match.identity.strategy));
  out.key("scope").string(match.identity.scope.to_string());
  out.key("identity_hash").string(match.identity.hash.to_string());
  time_member(out, "expires_at", match.expires_at);
  out.key("superseded");
  match.superseded ? out.string(match.superseded->to_string()) : out.null();
  out.end_object();
}

void write_control_error(JsonWriter& out, std::string_view target, Kind of, const ControlOutcome& outcome) {
  const auto write_why = [&](ControlOutcome::Kind kind) {
    out.key("error").string(to_string(kind, of)).key("message").string(describe(kind, target, of, outcome.steps));
  };
  write_why(outcome.kind);
  if (outcome.kind == ControlOutcome::Kind::no_such_step) {
    out.key("pointer").string("/from_step").key("steps").integer(outcome.steps);
  }
  if (outcome.other) out.key("existing_execution_id").string(outcome.other->to_string());
  if (outcome.kind == ControlOutcome::Kind::failed_before) {
    out.key("earlier").begin_object();
    write_why(outcome.before);
    out.end_object();
  }
}

// As the engine makes it where the caller gave none.
std::string forked_id(const ControlRequest& request) {
  if (!request.fork_workflow_id.empty()) return request.fork_workflow_id;
  return fork_workflow_id(request.workflow_id.value_or(""), request.request_key);
}

}  // namespace

namespace {

void write_execution_as(JsonWriter& out, const Execution& execution, bool with_log) {
  require_sound(execution);
  const bool running = execution.status == Status::running;
  out.begin_object();
  write_names(out, execution);
  fields(WriteShown(out), execution);
  if (execution.attempt_limit != execution.max_attempts) out.key("attempt_limit").integer(execution.attempt_limit);
  out.key("cancel_requested").boolean(execution.cancel_requested_at.has_value());
  write_place_in_workflow(out, execution);
  if (execution.kind == Kind::workflow) write_run(out, execution.run);
  write_notes(out, execution, with_log);
  out.key("worker");
  running ? out.string(execution.worker) : out.null();
  time_member(out, "lease_expires_at", running ? execution.lease_expires_at : std::nullopt);
  out.end_object();
}

}  // namespace

void write_execution(JsonWriter& out, const Execution& execution) { write_execution_as(out, execution, false); }
void write_execution_with_log(JsonWriter& out, const Execution& execution) { write_execution_as(out, execution, true); }

void write_why(JsonWriter& out, const Why& why) {
  out.begin_object().key("state").string(why.state).key("sentences").begin_array();
  for (const std::string& sentence : why.sentences) out.string(sentence);
  out.end_array().key("because").begin_array();
  for (const std::string& because : why.because) out.raw(because);
  out.end_array().end_object();
}

void write_page(JsonWriter& out, const Page& page) {
  out.begin_object().key("executions").begin_array();
  for (const Execution& execution : page) write_execution(out, execution);
  out.end_array();
  if (!page.damaged.empty()) {
    out.key("damaged").begin_array();
    for (const Damaged& damaged : page.damaged) {
      out.begin_object().key("id").string(damaged.id.to_string()).key("error").string("StoreCorrupt");
      out.key("message").string(damaged.what).end_object();
    }
    out.end_array();
  }
  out.key("next_cursor");
  page.next ? out.string(page.next->to_string()) : out.null();
  out.end_object();
}

void write_tombstone(JsonWriter& out, const Execution& execution) {
  out.begin_object();
  write_names(out, execution);
  out.key("created_at").string(format_time(execution.created_at));
  time_member(out, "completed_at", execution.finished_at);
  out.key("input_hash").string(execution.input_hash.to_string());
  out.end_object();
}

void write_receipt(JsonWriter& out, const Receipt& receipt) {
  out.begin_object();
  out.key("created").boolean(receipt.created);
  time_member(out, "deduplicated_from", receipt.created ? std::nullopt : std::optional(receipt.execution.created_at));
  out.key("execution");
  const bool in_short = receipt.result_expired || receipt.result_omitted;
  in_short ? write_tombstone(out, receipt.execution) : write_execution(out, receipt.execution);
  out.key("match");
  receipt.match ? write_match(out, *receipt.match) : static_cast<void>(out.null());
  if (receipt.result_expired) out.key("result_expired").boolean(true);
  if (receipt.result_omitted) out.key("result_omitted").boolean(true);
  if (receipt.dry_run) out.key("dry_run").boolean(true);
  if (receipt.claimed) write_claim_of(out.key("claim"), receipt.execution, {});
  out.end_object();
}

void write_refusal(JsonWriter& out, const Refusal& refusal) {
  const Kind kind = refusal.existing ? refusal.existing->kind : Kind::task;
  out.begin_object().key("error").string(to_string(refusal.code, kind)).key("message").string(refusal.message);
  if (!refusal.existing) {
    if (refusal.code != Refusal::Code::store_corrupt) out.key("pointer").string(refusal.pointer);
    out.end_object();
    return;
  }
  const Execution& existing = *refusal.existing;
  out.key("existing_execution_id").string(existing.id.to_string());
  out.key("status").string(to_string(existing.status));
  if (refusal.code == Refusal::Code::task_already_completed) {
    time_member(out, "completed_at", existing.finished_at);
    if (existing.result) out.key("result").raw(*existing.result);
    if (refusal.result_omitted) out.key("result_omitted").boolean(true);
  }
  if (refusal.code == Refusal::Code::idempotency_conflict) {
    out.key("input_hash");
    refusal.input_hash ? out.string(refusal.input_hash->to_string()) : out.null();
    out.key("existing_input_hash").string(existing.input_hash.to_string());
  }
  out.end_object();
}

void write_submit_result(JsonWriter& out, const SubmitResult& result) {
  if (const auto* receipt = std::get_if<Receipt>(&result)) {
    write_receipt(out, *receipt);
  } else {
    write_refusal(out, std::get<Refusal>(result));
  }
}

void write_claim_of(JsonWriter& out, const Execution& execution, const std::vector<Event>& events) {
  const LeaseToken token{execution.id, execution.attempt, execution.lease_secret.value_or(LeaseSecret{})};
  out.begin_object();
  out.key("lease").string(token.to_string());
  time_member(out, "lease_expires_at", execution.lease_expires_at);
  out.key("attempt").integer(execution.attempt);
  out.key("effect_key").string(execution.effect_key());
  out.key("execution");
  write_execution(out, execution);
  if (execution.kind == Kind::workflow) {
    out.key("run").begin_object();
    out.key("events").integer(execution.run.events);
    out.key("seen").integer(execution.run.seen);
    out.key("steps").integer(execution.run.steps).end_object();
    out.key("events").begin_array();
    for (const Event& event : events) write_event(out, event);
    out.end_array();
  }
  out.end_object();
}

void write_result(JsonWriter& out, const Execution& execution) {
  out.begin_object();
  out.key("id").string(execution.id.to_string());
  if (execution.kind == Kind::workflow) string_member(out, "workflow_id", execution.idempotency_key);
  out.key("status").string(to_string(execution.status));
  if (execution.result) out.key("result").raw(*execution.result);
  if (execution.error) {
    out.key("error");
    write_error(out, *execution.error);
  }
  out.key("execution");
  write_execution(out, execution);
  out.end_object();
}

void write_control(JsonWriter& out, std::string_view target, const ControlOutcome& outcome) {
  out.begin_object();
  if (outcome.kind == ControlOutcome::Kind::done) {
    out.key("id").string(target).key("status").string(to_string(outcome.status));
    out.key("changed").boolean(outcome.changed);
  } else {
    write_control_error(out, target, Kind::task, outcome);
  }
  out.key("idempotency_replayed").boolean(outcome.replayed).end_object();
}

void write_workflow_control(JsonWriter& out, const ControlRequest& request, const ControlOutcome& outcome) {
  const std::string& target = *request.workflow_id;
  out.begin_object();
  if (outcome.kind == ControlOutcome::Kind::done) {
    const bool fork = request.action == ControlRequest::Action::fork;
    out.key("workflow_id").string(fork ? forked_id(request) : target);
    if (fork) out.key("forked_from").string(target).key("from_step").integer(request.from_step);
    if (request.action == ControlRequest::Action::signal) out.key("signal").string(request.signal);
    if (outcome.execution) out.key("execution_id").string(outcome.execution->to_string());
    out.key("status").string(to_string(outcome.status));
    out.key("changed").boolean(outcome.changed);
  } else {
    write_control_error(out, target, Kind::workflow, outcome);
  }
  out.key("idempotency_replayed").boolean(outcome.replayed).end_object();
}

void write_update_outcome(JsonWriter& out, const UpdateRequest& request, const UpdateOutcome& outcome) {
  using State = UpdateOutcome::State;
  const ControlOutcome& delivery = outcome.delivery;
  out.begin_object();
  if (delivery.kind != ControlOutcome::Kind::done) {
    write_control_error(out, request.workflow_id, Kind::workflow, delivery);
  } else {
    if (outcome.state == State::refused) {
      out.key("error").string("UpdateRefused").key("message").string(outcome.error->message);
      out.key("type").string(outcome.error->type);
    } else if (outcome.state == State::closed) {
      out.key("error").string("WorkflowClosed").key("message").string(closed_before_answer(request.workflow_id));
    }
    out.key("workflow_id").string(request.workflow_id).key("update").string(request.name);
    if (delivery.execution) out.key("execution_id").string(delivery.execution->to_string());
    if (outcome.state == State::answered) {
      out.key("status").string("completed");
      if (outcome.result) out.key("result").raw(*outcome.result);
    } else if (outcome.state == State::pending) {
      out.key("status").string("pending");
    }
  }
  out.key("idempotency_replayed").boolean(delivery.replayed).end_object();
}

void write_queue(JsonWriter& out, const QueueView& queue) {
  out.begin_object();
  out.key("name").string(queue.name);
  out.key("settings").raw(queue.settings.to_json());
  out.key("from_file").begin_array();
  for (const std::string& name : queue.from_file) out.string(name);
  out.end_array();
  out.key("known").boolean(queue.known);
  out.key("pending").integer(queue.count.pending);
  out.key("running").integer(queue.count.running);
  time_member(out, "oldest_run_at", queue.count.oldest_run_at);
  out.end_object();
}

void write_type(JsonWriter& out, const TypeView& type) {
  out.begin_object();
  out.key("name").string(type.name);
  out.key("settings").raw(type.settings.to_json());
  out.key("from_file").begin_array();
  for (const std::string& name : type.from_file) out.string(name);
  out.end_array().key("from_code").begin_array();
  for (const std::string& name : type.from_code) out.string(name);
  out.end_array();
  out.key("declared").boolean(type.declared);
  out.key("identity").begin_object();
  out.key("strategy").string(to_string(type.identity.strategy));
  out.key("from").string(to_string(type.identity.source));
  out.key("steps").string(to_string(type.identity.of_steps()));
  out.end_object().end_object();
}

void write_identity(JsonWriter& out, const FoundIdentity& found) {
  const LedgerEntry& entry = found.entry;
  out.begin_object();
  out.key("identity_hash").string(entry.identity.hash.to_string());
  out.key("strategy").string(to_string(entry.identity.strategy));
  out.key("scope").string(entry.identity.scope.to_string());
  out.key("live").boolean(found.live);
  out.key("created_at").string(format_time(entry.created_at));
  time_member(out, "expires_at", found.expires_at);
  out.key("input_hash").string(entry.input_hash.to_string());
  out.key("execution_id").string(entry.owner.to_string());
  out.key("result_expired").boolean(!found.owner.has_value());
  out.key("execution");
  if (found.owner) {
    write_execution(out, *found.owner);
  } else if (entry.tombstone) {
    write_tombstone(out, execution_of(entry));
  } else {
    out.null();
  }
  out.end_object();
}

}  // namespace hapax::wire
