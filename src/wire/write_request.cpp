#include "wire/write_request.h"

#include "core/canonical_json.h"
#include "core/json_writer.h"

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
  if (request.deadline) {
    const auto* at = std::get_if<Time>(&*request.deadline);
    out.key("deadline").string(at ? format_time(*at) : format_duration(std::get<Duration>(*request.deadline)));
  }
  text(out, "concurrency_key", request.concurrency_key);
  if (request.headers) {
    out.key("headers").begin_object();
    for (const auto& [name, value] : *request.headers) out.key(name).string(value);
    out.end_object();
  }
  if (request.tags) strings(out, "tags", *request.tags);
  if (request.dry_run) out.key("dry_run").boolean(true);
  if (request.id) out.key("id").string(request.id->to_string());
  out.end_object();
}

std::string write_submit(const SubmitRequest& request) {
  JsonWriter out;
  write_submit(out, request);
  return out.take();
}

std::string write_batch(std::span<const SubmitRequest> requests) {
  JsonWriter out;
  out.begin_object().key("tasks").begin_array();
  for (const SubmitRequest& request : requests) write_submit(out, request);
  out.end_array().end_object();
  return out.take();
}

std::string write_claim_call(const ClaimCall& call) {
  JsonWriter out;
  out.begin_object();
  out.key("worker").string(call.worker);
  strings(out, "queues", call.queues);
  if (call.workflows || !call.tasks) {
    out.key("kinds").begin_array();
    if (call.tasks) out.string("task");
    if (call.workflows) out.string("workflow");
    out.end_array();
  }
  out.key("limit").integer(call.limit);
  out.key("wait").string(format_duration(call.wait));
  out.key("lease").string(format_duration(call.lease));
  out.end_object();
  return out.take();
}

namespace {

void write_leases(JsonWriter& out, std::span<const Extension> extensions) {
  out.key("leases").begin_array();
  for (const Extension& extension : extensions) out.string(extension.token.to_string());
  out.end_array();
}

}  // namespace

std::string write_heartbeat(std::span<const Extension> extensions, Duration lease) {
  JsonWriter out;
  out.begin_object();
  write_leases(out, extensions);
  out.key("lease").string(format_duration(lease)).end_object();
  return out.take();
}

std::string write_return(std::span<const Extension> extensions) {
  JsonWriter out;
  out.begin_object();
  write_leases(out, extensions);
  out.end_object();
  return out.take();
}

void write_report(JsonWriter& out, const Report& report) {
  out.begin_object().key("lease").string(report.token.to_string());
  if (const auto* completed = std::get_if<Report::Completed>(&report.outcome)) {
    if (completed->result) out.key("result").raw(*completed->result);
  } else {
    const auto& failed = std::get<Report::Failed>(report.outcome);
    out.key("error").begin_object();
    out.key("type").string(failed.error.type).key("message").string(failed.error.message);
    out.key("retryable").boolean(failed.retryable).end_object();
  }
  out.end_object();
}

std::string write_finish(std::span<const Report> reports) {
  JsonWriter out;
  out.begin_object().key("outcomes").begin_array();
  for (const Report& report : reports) write_report(out, report);
  out.end_array().end_object();
  return out.take();
}

}  // namespace hapax::wire
