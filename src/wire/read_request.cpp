#include "wire/read_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/canonical_json.h"
#include "core/field.h"
#include "core/name.h"
#include "engine/check_request.h"
#include "wire/worker.h"

namespace hapax::wire {

namespace {

constexpr std::int64_t kMaxItems = static_cast<std::int64_t>(Engine::kMaxBatch);

std::string item_pointer(const std::string& at, std::size_t index) { return at + "/" + std::to_string(index); }

// Checks what was read at that place.
template <class Value>
void check_at(const std::string& at, const Value& value) {
  try {
    check(value);
  } catch (const InvalidField& error) {
    throw InvalidField(at + error.pointer(), error.what(), error.code());
  }
}

std::optional<std::int32_t> small_integer(FieldReader& fields, std::string_view name, std::int32_t low,
                                          std::int32_t high) {
  const auto value = fields.integer(name, low, high);
  return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
}

std::optional<std::variant<Duration, Time>> read_end(FieldReader& fields, std::string_view name) {
  const auto text = fields.string(name);
  if (!text) return std::nullopt;
  if (const auto duration = parse_duration(*text)) return *duration;
  if (const auto time = parse_time(*text)) return *time;
  throw InvalidField(fields.pointer(name),
                     "must be a duration like \"1h\" or a time like \"2026-01-27T12:00:00Z\", not \"" + *text + "\"");
}

// An array of 1 to `most` items; absent is an error.
const Json& bounded_array(FieldReader& fields, std::string_view name, std::int64_t most) {
  const Json* array = fields.array(name);
  if (array == nullptr) throw InvalidField(fields.pointer(name), "is required");
  if (array->items.empty() || array->items.size() > static_cast<std::size_t>(most)) {
    throw InvalidField(fields.pointer(name), fmt::format("must have 1 to {} items, not {}", most, array->items.size()));
  }
  return *array;
}

void read_kinds(FieldReader& fields, ClaimCall& call) {
  const auto kinds = fields.strings("kinds");
  if (!kinds) return;
  const std::string at = fields.pointer("kinds");
  call.tasks = false;
  for (std::size_t i = 0; i < kinds->size(); ++i) {
    const std::string& kind = (*kinds)[i];
    if (kind != "task" && kind != "workflow") {
      throw InvalidField(item_pointer(at, i), "must be one of task, workflow, not \"" + kind + "\"");
    }
    (kind == "task" ? call.tasks : call.workflows) = true;
  }
}

void read_types(FieldReader& fields, ClaimCall& call) {
  auto types = fields.strings("types");
  if (!types) return;
  if (types->empty())
    throw InvalidField(fields.pointer("types"), "must name a type; without the member, any is claimed");
  call.types = *std::move(types);
}

void read_claim_id(FieldReader& fields, ClaimCall& call) {
  auto claim_id = fields.string("claim_id");
  if (!claim_id) return;
  if (claim_id->empty()) throw InvalidField(fields.pointer("claim_id"), "must not be empty: draw one for each claim");
  call.claim_id = *std::move(claim_id);
}

Report::Failed read_failed(const Json& document, const std::string& at) {
  FieldReader fields(document, at);
  Report::Failed failed;
  failed.error = read_error(fields);
  failed.retryable = fields.boolean("retryable").value_or(true);
  failed.retry_after = read_end(fields, "retry_after");
  fields.done();
  return failed;
}

std::optional<std::map<std::string, std::string>> read_headers(FieldReader& fields) {
  const Json* object = fields.object("headers");
  if (!object) return std::nullopt;
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : object->members) {
    if (!value.is(Json::Kind::string)) throw InvalidField(fields.pointer("headers") + "/" + name, "must be a string");
    headers.emplace(name, value.text);
  }
  return headers;
}

std::optional<SubmitRequest::RunHere> read_run_here(FieldReader& fields) {
  const Json* object = fields.object("run_here");
  if (!object) return std::nullopt;
  FieldReader members(*object, fields.pointer("run_here"));
  SubmitRequest::RunHere run_here;
  run_here.worker = members.required("worker", members.string("worker"));
  run_here.lease = members.duration("lease").value_or(run_here.lease);
  members.done();
  return run_here;
}

std::optional<ExecutionId> read_id(FieldReader& fields) {
  const auto text = fields.string("id");
  if (!text) return std::nullopt;
  const auto id = ExecutionId::parse(*text);
  if (!id || !id->is_v7()) {
    throw InvalidField(fields.pointer("id"), "must be a UUID of version 7, as 019bf2d4-8c1e-7a3b-9f00-5d1c2e3f4a5b",
                       "InvalidId");
  }
  return id;
}

}  // namespace

AttemptError read_error(FieldReader& fields) {
  AttemptError error;
  error.type = fields.string("type").value_or("Error");
  error.message = fields.required("message", fields.string("message"));
  error.stack = fields.string("stack");
  if (const Json* details = fields.any("details")) error.details = canonical_json(*details);
  return error;
}

SubmitRequest read_submit(Json document, const std::string& at, Kind kind) {
  FieldReader fields(document, at);
  SubmitRequest request;
  request.kind = kind;
  request.type = fields.required("type", fields.string("type"));
  fields.any("input");
  request.queue = fields.string("queue");
  request.idempotency_key = fields.string(kind == Kind::workflow ? "workflow_id" : "idempotency_key");
  if (const auto scope = fields.string("scope")) request.scope = Scope::parse(*scope);
  request.identity = fields.word("identity", parse_strategy, "caller_provided, strict, contextual, always_unique");
  request.identity_fields = fields.strings("identity_fields");
  request.max_attempts = small_integer(fields, "max_attempts", 1, kMaxAttemptsLimit);
  if (const Json* retry = fields.object("retry")) request.retry = RetrySettings::parse(*retry, fields.pointer("retry"));
  request.reuse = fields.word("reuse", parse_reuse, "allow_failed, reject, allow_closed, replace");
  request.on_duplicate = fields.word("on_duplicate", parse_on_duplicate, "return, error");
  request.idempotency_ttl = fields.duration("idempotency_ttl");
  request.priority = small_integer(fields, "priority", -kMaxPriority, kMaxPriority);
  request.run_at = fields.time("run_at");
  request.delay = fields.duration("delay");
  request.timeout = fields.duration("timeout");
  request.deadline = read_end(fields, "deadline");
  request.concurrency_key = fields.string("concurrency_key");
  request.headers = read_headers(fields);
  request.tags = fields.strings("tags");
  request.dry_run = fields.boolean("dry_run").value_or(false);
  request.id = read_id(fields);
  request.run_here = read_run_here(fields);
  fields.done();
  check_at(at, request);
  for (auto& [name, value] : document.members) {
    if (name == "input") request.input = std::move(value);
  }
  return request;
}

std::vector<Json> read_batch(Json document, std::string_view items) {
  FieldReader fields(document);
  fields.array(items);
  fields.done();
  bounded_array(fields, items, kMaxItems);
  return std::move(document.members.front().second.items);
}

ClaimCall read_claim_call(const Json& document, std::string name_space) {
  FieldReader fields(document);
  ClaimCall call;
  call.name_space = std::move(name_space);
  call.worker = fields.string("worker").value_or("anonymous");
  call.queues = fields.strings("queues").value_or(std::vector<std::string>{"default"});
  read_types(fields, call);
  read_kinds(fields, call);
  call.limit = small_integer(fields, "limit", 1, kMaxClaims).value_or(1);
  call.wait = fields.duration("wait").value_or(call.wait);
  call.lease = fields.duration("lease").value_or(call.lease);
  read_claim_id(fields, call);
  call.origin = read_origin(fields);
  fields.done();
  check(call);
  return call;
}

namespace {

// A lease alone, or with what its attempt says.
Heartbeat::Beat read_beat(const Json& document, const std::string& at) {
  Heartbeat::Beat beat;
  if (document.is(Json::Kind::string)) {
    beat.lease = document.text;
    return beat;
  }
  if (!document.is(Json::Kind::object)) throw InvalidField(at, "must be a lease, or an object with a lease");
  FieldReader fields(document, at);
  beat.lease = fields.required("lease", fields.string("lease"));
  if (const Json* progress = fields.any("progress")) beat.progress = canonical_json(*progress);
  beat.log = fields.strings("log").value_or(std::vector<std::string>());
  fields.done();
  check_at(at, Extension{.token = {}, .progress = beat.progress, .log = beat.log});
  return beat;
}

}  // namespace

Heartbeat read_heartbeat(const Json& document) {
  FieldReader fields(document);
  Heartbeat heartbeat;
  const Json& leases = bounded_array(fields, "leases", kMaxItems);
  heartbeat.leases.reserve(leases.items.size());
  for (std::size_t i = 0; i < leases.items.size(); ++i) {
    heartbeat.leases.push_back(read_beat(leases.items[i], item_pointer("/leases", i)));
  }
  heartbeat.lease = fields.duration("lease").value_or(heartbeat.lease);
  fields.done();
  check_lease(heartbeat.lease);
  return heartbeat;
}

std::vector<std::string> read_return(const Json& document) {
  FieldReader fields(document);
  bounded_array(fields, "leases", kMaxItems);
  std::vector<std::string> leases = *fields.strings("leases");
  fields.done();
  return leases;
}

FinishItem read_finish_item(const Json& document, const std::string& at) {
  FieldReader fields(document, at);
  FinishItem item;
  item.lease = fields.required("lease", fields.string("lease"));
  const Json* result = fields.any("result");
  const Json* error = fields.object("error");
  const auto snooze = fields.duration("snooze");
  fields.done();
  if ((result != nullptr) + (error != nullptr) + snooze.has_value() > 1) {
    throw InvalidField(at, "must have one of \"result\", \"error\" and \"snooze\": an attempt ends in one of them");
  }
  if (error != nullptr) {
    item.outcome = read_failed(*error, at + "/error");
    check_at(at, Report{{}, item.outcome, {}});
  } else if (snooze) {
    item.outcome = Report::Snoozed{*snooze};
  } else {
    Report::Completed completed;
    if (result != nullptr) completed.result = canonical_json(*result);
    item.outcome = std::move(completed);
  }
  return item;
}

std::vector<FinishItem> read_finish(const Json& document) {
  FieldReader fields(document);
  const Json& outcomes = bounded_array(fields, "outcomes", kMaxItems);
  std::vector<FinishItem> items;
  items.reserve(outcomes.items.size());
  for (std::size_t i = 0; i < outcomes.items.size(); ++i) {
    items.push_back(read_finish_item(outcomes.items[i], item_pointer("/outcomes", i)));
  }
  fields.done();
  return items;
}

void read_cancel(const Json& document, ControlRequest& request) {
  FieldReader fields(document);
  const auto parse_mode = [](std::string_view word) {
    return word == "now" || word == "request" ? std::optional(word == "request") : std::nullopt;
  };
  request.asks = fields.word("mode", parse_mode, "now, request").value_or(false);
  request.grace = fields.duration("grace");
  const Json* reason = fields.any("reason");
  if (reason && !reason->is(Json::Kind::null)) request.payload = canonical_json(*reason);
  fields.done();
  if (!request.asks && request.grace) throw InvalidField("/grace", "is for the mode \"request\"");
  if (!request.asks && request.payload) throw InvalidField("/reason", "is for the mode \"request\"");
}

void read_fork(const Json& document, ControlRequest& request) {
  FieldReader fields(document);
  const auto from_step = small_integer(fields, "from_step", 0, std::numeric_limits<std::int32_t>::max()).value_or(0);
  request.from_step = std::max(from_step, 1);  // 0: from the start
  const auto workflow_id = fields.string("workflow_id");
  fields.done();
  // An empty one would be taken for none.
  if (workflow_id && workflow_id->empty()) throw InvalidField("/workflow_id", *check_idempotency_key(""));
  request.fork_workflow_id = workflow_id.value_or("");
}

void read_signal(const Json& document, ControlRequest& request) {
  FieldReader fields(document);
  if (const Json* payload = fields.any("payload")) request.payload = canonical_json(*payload);
  fields.done();
}

std::optional<std::string> read_update(const Json& document) {
  ControlRequest as_signal;
  read_signal(document, as_signal);
  return std::move(as_signal.payload);
}

Backfill read_backfill(const Json& document) {
  FieldReader fields(document);
  Backfill wanted;
  wanted.from = fields.required("from", fields.time("from"));
  wanted.to = fields.required("to", fields.time("to"));
  wanted.force = fields.boolean("force").value_or(false);
  fields.done();
  return wanted;
}

}  // namespace hapax::wire
