#include "wire/write_request.h"

#include "core/canonical_json.h"
#include "core/json_writer.h"
#include "wire/shown_fields.h"
#include "wire/worker.h"

namespace hapax::wire {

namespace {

void text(JsonWriter& out, std::string_view name, const std::optional<std::string>& value) {
  if (value) out.key(name).string(*value);
}

void duration(JsonWriter& out, std::string_view name, const std::optional<Duration>& value) {
  if (value) out.key(name).string(format_duration(*value));
}

void integer(JsonWriter& out, std::string_view name, const std::optional<std::int32_t>& value) {
  if (value) out.key(name).integer(*value);
}

template <class Word>
void word(JsonWriter& out, std::string_view name, const std::optional<Word>& value) {
  if (value) out.key(name).string(to_string(*value));
}

void strings(JsonWriter& out, std::string_view name, const std::vector<std::string>& values) {
  out.key(name).begin_array();
  for (const std::string& value : values) out.string(value);
  out.end_array();
}

void write_end(JsonWriter& out, std::string_view name, const std::variant<Duration, Time>& end) {
  const auto* at = std::get_if<Time>(&end);
  out.key(name).string(at ? format_time(*at) : format_duration(std::get<Duration>(end)));
}

void write_retry(JsonWriter& out, const RetrySettings& retry) {
  if (retry == RetrySettings{}) return;
  out.key("retry").begin_object();
  duration(out, "initial", retry.initial);
  if (retry.factor) out.key("factor").number(*retry.factor);
  duration(out, "max", retry.max);
  out.end_object();
}

}  // namespace

void write_submit(JsonWriter& out, const SubmitRequest& request) {
  out.begin_object();
  out.key("type").string(request.type);
  if (!request.input.is(Json::Kind::null)) out.key("input").raw(canonical_json(request.input));
  text(out, "queue", request.queue);
  text(out, request.kind == Kind::workflow ? "workflow_id" : "idempotency_key", request.idempotency_key);
  if (request.scope) out.key("scope").string(request.scope->to_string());
  word(out, "identity", request.identity);
  if (request.identity_fields) strings(out, "identity_fields", *request.identity_fields);
  word(out, "reuse", request.reuse);
  word(out, "on_duplicate", request.on_duplicate);
  duration(out, "idempotency_ttl", request.idempotency_ttl);
  integer(out, "priority", request.priority);
  if (request.run_at) out.key("run_at").string(format_time(*request.run_at));
  duration(out, "delay", request.delay);
  integer(out, "max_attempts", request.max_attempts);
  write_retry(out, request.retry);
  duration(out, "timeout", request.timeout);
  if (request.deadline) write_end(out, "deadline", *request.deadline);
  text(out, "concurrency_key", request.concurrency_key);
  if (request.headers) {
    out.key("headers").begin_object();
    for (const auto& [name, value] : *request.headers) out.key(name).string(value);
    out.end_object();
  }
  if (request.tags) strings(out, "tags", *request.tags);
  if (request.dry_run) out.key("dry_run").boolean(true);
  if (request.id) out.key("id").string(request.id->to_string());
  if (request.run_here) {
    out.key("run_here").begin_object().key("worker").string(request.run_here->worker);
    out.key("lease").string(format_duration(request.run_here->lease)).end_object();
  }
  out.end_object();
}

std::string write_submit(const SubmitRequest& request) {
  JsonWriter out;
  write_submit(out, request);
  return out.take();
}

std::string write_claim_call(const ClaimCall& call) {
  JsonWriter out;
  out.begin_object();
  out.key("worker").string(call.worker);
  strings(out, "queues", call.queues);
  if (!call.types.empty()) strings(out, "types", call.types);
  if (call.workflows || !call.tasks) {
    out.key("kinds").begin_array();
    if (call.tasks) out.string("task");
    if (call.workflows) out.string("workflow");
    out.end_array();
  }
  out.key("limit").integer(call.limit);
  out.key("wait").string(format_duration(call.wait));
  out.key("lease").string(format_duration(call.lease));
  if (!call.claim_id.empty()) out.key("claim_id").string(call.claim_id);
  write_origin(out, call.origin);
  out.end_object();
  return out.take();
}

namespace {

// With what its attempt says, if it says anything.
void write_lease(JsonWriter& out, const Extension& extension) {
  const std::string lease = extension.token.to_string();
  if (!extension.progress && extension.log.empty()) {
    out.string(lease);
    return;
  }
  out.begin_object().key("lease").string(lease);
  if (extension.progress) out.key("progress").raw(*extension.progress);
  if (!extension.log.empty()) strings(out, "log", extension.log);
  out.end_object();
}

}  // namespace

std::string write_lease(const Extension& extension) {
  JsonWriter out;
  write_lease(out, extension);
  return out.take();
}

void write_report(JsonWriter& out, const Report& report) {
  out.begin_object().key("lease").string(report.token.to_string());
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    if (completed->result) out.key("result").raw(*completed->result);
  } else if (const auto* snoozed = std::get_if<Report::Snoozed>(&report.outcome)) {
    out.key("snooze").string(format_duration(snoozed->by));
  } else {
    const auto& failed = std::get<Report::Failed>(report.outcome);
    out.key("error").begin_object();
    fields(WriteShown(out), failed.error);
    out.key("retryable").boolean(failed.retryable);
    if (failed.retry_after) write_end(out, "retry_after", *failed.retry_after);
    out.end_object();
  }
  out.end_object();
}

std::string write_report(const Report& report) {
  JsonWriter out;
  write_report(out, report);
  return out.take();
}

}  // namespace hapax::wire
