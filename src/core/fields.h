// What is stored of an execution and of what belongs to it, described once.
//
// Each list calls visit(Field, member) for every field, in the order in which fields are written. The columns of SQLite
// and PostgreSQL, the documents in a bucket, the cache's entries and the JSON of the API are made from these lists, so
// a new field is one line here and its use. The value may be const.
//
// A member that has a list of its own is a group: a document nests it, a table spreads it over columns "group_part".
#pragma once

#include <concepts>
#include <string_view>

#include "core/execution.h"
#include "core/ledger.h"
#include "core/workflow.h"

namespace hapax {

struct Field {
  // How the API shows a field.
  enum class Shown : std::uint8_t {
    no,       // or by code of its own, in wire/write_answer.cpp
    always,   // as null where it is absent
    if_there  // left out where it is absent
  };

  std::string_view name;        // of its column, and in documents
  std::string_view shown_as{};  // in the API, where that is another
  Shown shown = Shown::no;
  bool is_json = false;  // a text that holds JSON

  constexpr std::string_view api_name() const { return shown_as.empty() ? name : shown_as; }
};

// An execution's own, or one that only a const may be read from.
template <class Value, class Plain>
concept Describes = std::same_as<std::remove_const_t<Value>, Plain>;

namespace field {

constexpr Field hidden(std::string_view name) { return {.name = name}; }
constexpr Field shown(std::string_view name, std::string_view as = {}) {
  return {.name = name, .shown_as = as, .shown = Field::Shown::always};
}
constexpr Field shown_if_there(std::string_view name, std::string_view as = {}) {
  return {.name = name, .shown_as = as, .shown = Field::Shown::if_there};
}
constexpr Field json(Field field) {
  field.is_json = true;
  return field;
}

}  // namespace field

// ---- groups

template <class Visit>
void fields(Visit&& visit, Describes<RetryPolicy> auto& retry) {
  using namespace field;
  visit(shown("initial_ms", "initial"), retry.initial);
  visit(shown("factor"), retry.factor);
  visit(shown("max_ms", "max"), retry.max);
}

template <class Visit>
void fields(Visit&& visit, Describes<Scope> auto& scope) {
  using namespace field;
  visit(hidden("tag"), scope.tag);
  visit(hidden("name"), scope.name);
}

template <class Visit>
void fields(Visit&& visit, Describes<Identity> auto& identity) {
  using namespace field;
  visit(hidden("hash"), identity.hash);
  visit(hidden("strategy"), identity.strategy);
  visit(hidden("scope"), identity.scope);
}

template <class Visit>
void fields(Visit&& visit, Describes<AttemptError> auto& error) {
  using namespace field;
  visit(shown("type"), error.type);
  visit(shown("message"), error.message);
  visit(shown_if_there("stack"), error.stack);
  visit(json(shown_if_there("details")), error.details);
}

template <class Visit>
void fields(Visit&& visit, Describes<AttemptRecord> auto& record) {
  using namespace field;
  visit(shown("attempt"), record.attempt);
  visit(shown("worker"), record.worker);
  visit(shown("started_at"), record.started_at);
  visit(shown("ended_at"), record.ended_at);
  visit(shown("error"), record.error);
  visit(hidden("secret"), record.secret);
  visit(hidden("reported"), record.reported);
}

template <class Visit>
void fields(Visit&& visit, Describes<CommittedTurn> auto& turn) {
  using namespace field;
  visit(hidden("attempt"), turn.attempt);
  visit(hidden("secret"), turn.secret);
  visit(hidden("status"), turn.status);
}

template <class Visit>
void fields(Visit&& visit, Describes<RunState> auto& run) {
  using namespace field;
  visit(shown("events", "history_length"), run.events);
  visit(hidden("seen"), run.seen);
  visit(shown("steps"), run.steps);
  visit(hidden("stuck"), run.stuck);
  visit(shown_if_there("wake_at"), run.wake_at);
  visit(shown_if_there("continued_as"), run.continued_as);
  visit(hidden("committed"), run.committed);
}

// ---- an execution

// What never changes, in two parts. Namespace, queue and kind are apart, since the SQL stores keep a number for them;
// and so is the input, which may be long.
//
// What transitions and claims go by:
template <class Visit>
void ruling_fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(hidden("id"), e.id);
  visit(shown("priority"), e.priority);
  visit(shown("max_attempts"), e.max_attempts);
  visit(shown("retry"), e.retry);
  visit(shown("timeout_ms", "timeout"), e.timeout);
  visit(shown("created_at"), e.created_at);
  visit(shown("concurrency_key"), e.concurrency_key);
  visit(hidden("identity"), e.identity);
  visit(hidden("parent"), e.parent);
  visit(hidden("step"), e.step);
  visit(hidden("parent_workflow_id"), e.parent_workflow_id);
}

// What only handlers and readers want:
template <class Visit>
void telling_fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(hidden("type"), e.type);
  visit(hidden("idempotency_key"), e.idempotency_key);
  visit(shown("input_hash"), e.input_hash);
}

// What few have, and what no statement of a store asks for.
template <class Visit>
void rare_fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(hidden("superseded"), e.superseded);
  visit(json(shown_if_there("headers")), e.headers);
  visit(json(shown_if_there("tags")), e.tags);
}

// What decides when and how its next attempt begins.
template <class Visit>
void waiting_fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(shown("run_at"), e.run_at);
  visit(shown("attempt"), e.attempt);
  visit(hidden("attempt_limit"), e.attempt_limit);
  visit(shown("deadline_at", "deadline"), e.deadline_at);
  visit(hidden("cancel_requested_at"), e.cancel_requested_at);
  visit(hidden("cancel_by"), e.cancel_by);
  visit(hidden("attempt_ends_by"), e.attempt_ends_by);
  visit(shown_if_there("error"), e.error);
  visit(shown("failed_attempts", "attempts"), e.failed_attempts);
  visit(hidden("awaited"), e.awaited);
  visit(json(hidden("notes")), e.notes);
}

// What its latest attempt has made of it.
template <class Visit>
void attempt_fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(hidden("status"), e.status);
  visit(shown("started_at"), e.started_at);
  visit(shown("finished_at", "completed_at"), e.finished_at);
  visit(hidden("worker"), e.worker);
  visit(hidden("lease_secret"), e.lease_secret);
  visit(hidden("lease_expires_at"), e.lease_expires_at);
  visit(json(shown_if_there("result")), e.result);
}

// Everything that changes, but for the run of a workflow.
template <class Visit>
void state_fields(Visit&& visit, Describes<Execution> auto& e) {
  waiting_fields(visit, e);
  attempt_fields(visit, e);
}

template <class Visit>
void fields(Visit&& visit, Describes<Execution> auto& e) {
  using namespace field;
  visit(hidden("name_space"), e.name_space);
  visit(hidden("queue"), e.queue);
  visit(hidden("kind"), e.kind);
  ruling_fields(visit, e);
  telling_fields(visit, e);
  rare_fields(visit, e);
  visit(json(shown("input")), e.input);
  state_fields(visit, e);
  visit(hidden("run"), e.run);
}

// ---- the ledger

template <class Visit>
void fields(Visit&& visit, Describes<Tombstone> auto& tombstone) {
  using namespace field;
  visit(hidden("kind"), tombstone.kind);
  visit(hidden("type"), tombstone.type);
  visit(hidden("queue"), tombstone.queue);
  visit(hidden("idempotency_key"), tombstone.idempotency_key);
  visit(hidden("status"), tombstone.status);
  visit(hidden("created_at"), tombstone.created_at);
  visit(hidden("finished_at"), tombstone.finished_at);
}

template <class Visit>
void fields(Visit&& visit, Describes<LedgerEntry> auto& entry) {
  using namespace field;
  visit(hidden("identity"), entry.identity);
  visit(hidden("name_space"), entry.name_space);
  visit(hidden("owner"), entry.owner);
  visit(hidden("input_hash"), entry.input_hash);
  visit(hidden("created_at"), entry.created_at);
  visit(hidden("expires_at"), entry.expires_at);
  visit(hidden("tombstone"), entry.tombstone);
}

// ---- a workflow's history

template <class Visit>
void fields(Visit&& visit, Describes<Event> auto& event) {
  using namespace field;
  visit(hidden("no"), event.no);
  visit(hidden("at"), event.at);
  visit(hidden("kind"), event.kind);
  visit(hidden("step"), event.step);
  visit(hidden("name"), event.name);
  visit(hidden("key"), event.key);
  visit(hidden("execution"), event.execution);
  visit(hidden("until"), event.until);
  visit(hidden("status"), event.status);
  visit(json(hidden("value")), event.value);
  visit(hidden("error"), event.error);
}

// A value that has a list above, or may have one.
struct IgnoreFields {
  template <class Value>
  void operator()(const Field&, Value&) const {}
};
template <class Value>
concept Described = requires(Value& value) { fields(IgnoreFields{}, value); };

}  // namespace hapax
