#include "wire/read_answer.h"

#include <algorithm>

#include "core/canonical_json.h"
#include "core/field.h"
#include "core/notes.h"
#include "wire/error_code.h"
#include "wire/event.h"
#include "wire/shown_fields.h"

namespace hapax::wire {

namespace {

template <class Settings>
Settings read_settings(const Json& document, std::string_view name) {
  const Json* member = present(document, name);
  if (!member) return {};
  try {
    return Settings::parse(*member, "");
  } catch (const InvalidField&) {
    malformed(name);
  }
}

std::vector<std::string> read_names(const Json& document, std::string_view name) {
  return read_all(document, name, [](const Json& item) { return item.text; });
}

Refusal::Code refusal_code(std::string_view word) {
  return parse_refusal_code(word).value_or(Refusal::Code::invalid_argument);
}

Refusal read_refusal(const Json& document) {
  Refusal refusal;
  const std::string word = required_text(document, "error");
  refusal.code = refusal_code(word);
  refusal.message = text(document, "message").value_or("");
  refusal.pointer = text(document, "pointer").value_or("");
  refusal.input_hash = parsed(document, "input_hash", InputHash::parse);
  refusal.result_omitted = flag(document, "result_omitted");
  if (const auto id = parsed(document, "existing_execution_id", ExecutionId::parse)) {
    Execution existing;
    existing.id = *id;
    if (names_workflow(word)) existing.kind = Kind::workflow;
    existing.status = required(document, "status", parse_status);
    existing.finished_at = parsed(document, "completed_at", parse_time);
    if (const Json* result = document.find("result")) existing.result = canonical_json(*result);
    if (const auto hash = parsed(document, "existing_input_hash", InputHash::parse)) existing.input_hash = *hash;
    refusal.existing = std::move(existing);
  }
  return refusal;
}

Identity read_identity_parts(const Json& document) {
  Identity identity;
  identity.hash = required(document, "identity_hash", IdentityHash::parse);
  identity.strategy = required(document, "strategy", parse_strategy);
  identity.scope = Scope::parse(required_text(document, "scope"));
  return identity;
}

Receipt read_receipt(const Json& document) {
  Receipt receipt;
  receipt.created = flag(document, "created");
  receipt.result_expired = flag(document, "result_expired");
  receipt.result_omitted = flag(document, "result_omitted");
  receipt.dry_run = flag(document, "dry_run");
  receipt.execution = read_member(document, "execution", read_execution);
  if (const Json* claim = present(document, "claim")) {
    receipt.claimed = true;
    receipt.execution = read_claim(*claim).execution;
  }
  if (const Json* match = present(document, "match")) {
    receipt.match = Match{read_identity_parts(*match), parsed(*match, "expires_at", parse_time),
                          parsed(*match, "superseded", ExecutionId::parse)};
    receipt.execution.identity = receipt.match->identity;
  }
  return receipt;
}

}  // namespace

namespace {

std::optional<std::string> read_notes_of(const Json& document) {
  Notes notes;
  if (const Json* progress = document.find("progress")) notes.progress = canonical_json(*progress);
  if (const Json* log = present(document, "log")) {
    notes.attempt = small_integer(*log, "attempt");
    notes.dropped = integer(*log, "dropped", 0);
    notes.log = read_names(*log, "lines");
  }
  return notes == Notes{} ? std::nullopt : std::optional(write_notes(notes));
}

}  // namespace

Execution read_execution(const Json& document) {
  Execution execution;
  execution.id = required(document, "id", ExecutionId::parse);
  execution.kind = required_text(document, "kind") == "workflow" ? Kind::workflow : Kind::task;
  execution.name_space = required_text(document, "namespace");
  execution.type = required_text(document, "type");
  execution.queue = required_text(document, "queue");
  execution.status = required(document, "status", parse_status);
  execution.idempotency_key = text(document, "idempotency_key");
  execution.created_at = required(document, "created_at", parse_time);
  execution.run_at = execution.created_at;
  execution.input_hash = required(document, "input_hash", InputHash::parse);
  fields(ReadShown(document), execution);
  execution.attempt_limit = static_cast<std::int32_t>(integer(document, "attempt_limit", execution.max_attempts));
  if (flag(document, "cancel_requested")) execution.cancel_requested_at = execution.created_at;
  execution.parent = parsed(document, "parent", ExecutionId::parse);
  execution.parent_workflow_id = text(document, "parent_workflow_id").value_or("");
  execution.step = small_integer(document, "step");
  if (execution.kind == Kind::workflow) fields(ReadShown(document), execution.run);
  execution.run.stuck = small_integer(document, "stuck_turns");
  execution.notes = read_notes_of(document);
  execution.worker = text(document, "worker").value_or("");
  execution.lease_expires_at = parsed(document, "lease_expires_at", parse_time);
  return execution;
}

Why read_why(const Json& document) {
  Why why;
  why.state = required_text(document, "state");
  why.sentences = read_names(document, "sentences");
  why.because = read_all(document, "because", [](const Json& because) { return canonical_json(because); });
  return why;
}

Page read_page(const Json& document) {
  Page page;
  static_cast<std::vector<Execution>&>(page) = read_all(document, "executions", read_execution);
  if (document.find("damaged")) {
    page.damaged = read_all(document, "damaged", [](const Json& damaged) {
      return Damaged{required(damaged, "id", ExecutionId::parse), required_text(damaged, "message")};
    });
  }
  page.next = parsed(document, "next_cursor", ExecutionId::parse);
  return page;
}

Claimed read_claim(const Json& document) {
  Claimed claimed;
  claimed.execution = read_member(document, "execution", read_execution);
  claimed.execution.lease_secret = required(document, "lease", LeaseToken::parse).secret;
  if (claimed.execution.kind == Kind::workflow) {
    claimed.execution.run.seen = read_member(document, "run", [](const Json& run) { return integer(run, "seen", 0); });
    claimed.events = read_all(document, "events", read_event);
  }
  return claimed;
}

SubmitResult read_submit_result(const Json& document) {
  if (document.find("error")) return read_refusal(document);
  return read_receipt(document);
}

ExtendOutcome read_extend_outcome(const Json& document) {
  ExtendOutcome outcome;
  outcome.ok = flag(document, "ok");
  outcome.cancel_requested = flag(document, "cancel_requested");
  outcome.lease_expires_at = parsed(document, "lease_expires_at", parse_time);
  return outcome;
}

FinishOutcome read_finish_outcome(const Json& document) {
  FinishOutcome outcome;
  outcome.accepted = flag(document, "ok");
  return outcome;
}

TurnOutcome read_turn_outcome(const Json& document) {
  TurnOutcome outcome;
  outcome.accepted = flag(document, "ok");
  if (outcome.accepted) outcome.status = required(document, "status", parse_status);
  if (const Json* step = document.find("step")) outcome.step = read_finish_outcome(*step);
  return outcome;
}

StepsWithinTurns read_steps_within_turns(const Json& document) {
  StepsWithinTurns allowed;
  const auto name = [](const Json& text) { return text.text; };
  allowed.queues = read_all(document, "queues", name);
  allowed.except_types = read_all(document, "except_types", name);
  return allowed;
}

ControlOutcome read_control_outcome(const Json& document) {
  ControlOutcome outcome;
  outcome.replayed = flag(document, "idempotency_replayed");
  outcome.changed = flag(document, "changed");
  if (const auto word = text(document, "error")) {
    outcome.kind = parse_control_error(*word).value_or(ControlOutcome::Kind::key_conflict);
    outcome.other = parsed(document, "existing_execution_id", ExecutionId::parse);
    outcome.steps = small_integer(document, "steps");
    if (const Json* earlier = present(document, "earlier")) {
      outcome.before = parse_control_error(required_text(*earlier, "error")).value_or(ControlOutcome::Kind::not_found);
    }
  } else {
    outcome.status = required(document, "status", parse_status);
    outcome.execution = parsed(document, document.find("id") ? "id" : "execution_id", ExecutionId::parse);
  }
  return outcome;
}

UpdateOutcome read_update_outcome(const Json& document) {
  using State = UpdateOutcome::State;
  UpdateOutcome outcome;
  if (!document.find("update")) {
    outcome.delivery = read_control_outcome(document);
    return outcome;
  }
  outcome.delivery.replayed = flag(document, "idempotency_replayed");
  outcome.delivery.execution = parsed(document, "execution_id", ExecutionId::parse);
  if (text(document, "error") == "UpdateRefused") {
    outcome.state = State::refused;
    outcome.error = AttemptError{required_text(document, "type"), required_text(document, "message")};
  } else if (text(document, "error")) {
    outcome.state = State::closed;
  } else if (required_text(document, "status") == "completed") {
    outcome.state = State::answered;
    if (const Json* result = document.find("result")) outcome.result = canonical_json(*result);
  }
  return outcome;
}

QueueView read_queue(const Json& document) {
  QueueView view;
  view.name = required_text(document, "name");
  view.settings = read_settings<QueueSettings>(document, "settings");
  view.from_file = read_names(document, "from_file");
  view.known = flag(document, "known");
  view.count.queue = view.name;
  view.count.pending = integer(document, "pending", 0);
  view.count.running = integer(document, "running", 0);
  view.count.oldest_run_at = parsed(document, "oldest_run_at", parse_time);
  return view;
}

TypeView read_type(const Json& document) {
  TypeView view;
  view.name = required_text(document, "name");
  view.settings = read_settings<TypeSettings>(document, "settings");
  view.from_file = read_names(document, "from_file");
  view.from_code = read_names(document, "from_code");
  view.declared = flag(document, "declared");
  if (const Json* identity = present(document, "identity")) {
    view.identity = {required(*identity, "strategy", parse_strategy),
                     required(*identity, "from", parse_identity_source)};
  }
  return view;
}

FoundIdentity read_identity(const Json& document) {
  FoundIdentity found;
  found.entry.identity = read_identity_parts(document);
  found.entry.owner = required(document, "execution_id", ExecutionId::parse);
  found.entry.input_hash = required(document, "input_hash", InputHash::parse);
  found.entry.created_at = required(document, "created_at", parse_time);
  found.live = flag(document, "live");
  found.expires_at = parsed(document, "expires_at", parse_time);
  const Json* execution = present(document, "execution");
  if (!execution) return found;
  const Execution owner = read_execution(*execution);
  found.entry.name_space = owner.name_space;
  if (flag(document, "result_expired")) {
    found.entry.tombstone = Tombstone{owner.kind,
                                      owner.type,
                                      owner.queue,
                                      owner.idempotency_key,
                                      owner.status,
                                      owner.created_at,
                                      owner.finished_at.value_or(owner.created_at)};
  } else {
    found.owner = owner;
  }
  return found;
}

}  // namespace hapax::wire
