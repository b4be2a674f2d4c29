#include "http/parse_request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_set>

#include <fmt/core.h>

#include "core/canonical_json.h"
#include "core/field.h"
#include "core/name.h"
#include "core/packed_json.h"
#include "http/error.h"
#include "http/query.h"

namespace hapax::http {

namespace {

constexpr std::int64_t kMaxQueues = 100;
constexpr std::int64_t kMaxItems = static_cast<std::int64_t>(Engine::kMaxBatch);

std::string item_pointer(const std::string& at, std::size_t index) { return at + "/" + std::to_string(index); }

std::optional<Duration> positive(FieldReader& fields, std::string_view name) {
  auto value = fields.duration(name);
  if (value && *value <= Duration::zero()) throw InvalidField(fields.pointer(name), "must be longer than nothing");
  return value;
}

Duration duration_within(FieldReader& fields, std::string_view name, Duration standard, Duration low, Duration high) {
  const Duration value = fields.duration(name).value_or(standard);
  if (value < low || value > high) {
    throw InvalidField(fields.pointer(name),
                       fmt::format("must be from \"{}\" to \"{}\"", format_duration(low), format_duration(high)));
  }
  return value;
}

std::optional<std::string> key_field(FieldReader& fields, std::string_view name) {
  auto key = fields.string(name);
  if (key) {
    if (auto wrong = check_idempotency_key(*key)) throw InvalidField(fields.pointer(name), *wrong);
  }
  return key;
}

std::optional<std::int32_t> small_integer(FieldReader& fields, std::string_view name, std::int32_t low,
                                          std::int32_t high) {
  const auto value = fields.integer(name, low, high);
  return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
}

std::optional<std::variant<Duration, Time>> parse_deadline(FieldReader& fields) {
  const auto text = fields.string("deadline");
  if (!text) return std::nullopt;
  if (const auto duration = parse_duration(*text)) {
    if (*duration <= Duration::zero()) throw InvalidField(fields.pointer("deadline"), "must be longer than nothing");
    return *duration;
  }
  if (const auto time = parse_time(*text)) return *time;
  throw InvalidField(fields.pointer("deadline"),
                     "must be a duration like \"1h\" or a time like \"2026-01-27T12:00:00Z\", not \"" + *text + "\"");
}

std::optional<std::vector<std::string>> parse_identity_fields(FieldReader& fields) {
  auto pointers = fields.strings("identity_fields");
  if (!pointers) return std::nullopt;
  const std::string at = fields.pointer("identity_fields");
  if (pointers->empty() || pointers->size() > kMaxIdentityFields) {
    throw InvalidField(at, fmt::format("must name 1 to {} fields of the input", kMaxIdentityFields));
  }
  for (std::size_t i = 0; i < pointers->size(); ++i) {
    if (!is_json_pointer((*pointers)[i])) {
      throw InvalidField(item_pointer(at, i),
                         "must be a JSON Pointer like \"/order_id\", not \"" + (*pointers)[i] + "\"");
    }
  }
  return pointers;
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

std::vector<std::string> parse_queues(FieldReader& fields) {
  auto queues = fields.strings("queues");
  if (!queues) return {"default"};
  const std::string at = fields.pointer("queues");
  if (queues->empty() || queues->size() > kMaxQueues) {
    throw InvalidField(at, fmt::format("must name 1 to {} queues, not {}", kMaxQueues, queues->size()));
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < queues->size(); ++i) {
    const std::string& name = (*queues)[i];
    if (auto wrong = check_name(name)) throw InvalidField(item_pointer(at, i), *wrong);
    if (!seen.insert(name).second) throw InvalidField(item_pointer(at, i), "names the queue \"" + name + "\" again");
  }
  return *std::move(queues);
}

void parse_kinds(FieldReader& fields, ClaimCall& call) {
  const auto kinds = fields.strings("kinds");
  if (!kinds) return;
  const std::string at = fields.pointer("kinds");
  if (kinds->empty()) throw InvalidField(at, "must name task, workflow or both");
  call.tasks = false;
  for (std::size_t i = 0; i < kinds->size(); ++i) {
    const std::string& kind = (*kinds)[i];
    if (kind != "task" && kind != "workflow") {
      throw InvalidField(item_pointer(at, i), "must be one of task, workflow, not \"" + kind + "\"");
    }
    (kind == "task" ? call.tasks : call.workflows) = true;
  }
}

Duration parse_lease(FieldReader& fields) {
  return duration_within(fields, "lease", std::chrono::seconds(60), std::chrono::seconds(1), std::chrono::hours(24));
}

Report::Failed parse_failed(const Json& document, const std::string& at) {
  FieldReader fields(document, at);
  Report::Failed failed;
  failed.error.type = fields.name("type").value_or("Error");
  failed.error.message = fields.required("message", fields.string("message"));
  failed.retryable = fields.boolean("retryable").value_or(true);
  fields.done();
  return failed;
}

// A browser sends whatever a page tells it to, also to this machine, unless the media type requires a preflight. Other
// clients may send JSON as curl -d does, or without a type.
void check_media_type(const Request& request) {
  if (is_media_type(request.content_type, kJsonType)) return;
  if (request.has_origin) {
    throw RequestError(415, "UnsupportedMediaType",
                       "A request with an Origin header needs \"Content-Type: application/json\".");
  }
  if (request.body.empty() || request.content_type.empty()) return;
  if (is_media_type(request.content_type, "application/x-www-form-urlencoded")) return;
  throw RequestError(415, "UnsupportedMediaType", "The body must be JSON: send \"Content-Type: application/json\".");
}

// Fields that only a task has: a workflow is identified by its id, and its turns are tried until one is accepted.
std::optional<ExecutionId> id_field(FieldReader& fields) {
  const auto text = fields.string("id");
  if (!text) return std::nullopt;
  const auto id = ExecutionId::parse(*text);
  if (!id || !id->is_v7()) {
    throw InvalidField(fields.pointer("id"), "must be a UUID of version 7, as 019bf2d4-8c1e-7a3b-9f00-5d1c2e3f4a5b",
                       "InvalidId");
  }
  return id;
}

void read_task_identity(SubmitRequest& request, FieldReader& fields) {
  request.idempotency_key = key_field(fields, "idempotency_key");
  if (auto scope = fields.name("scope")) request.scope = Scope::parse(*scope);
  request.identity = fields.word("identity", parse_strategy, "caller_provided, strict, contextual, always_unique");
  request.identity_fields = parse_identity_fields(fields);
  request.max_attempts = small_integer(fields, "max_attempts", 1, kMaxAttemptsLimit);
  if (const Json* retry = fields.object("retry")) request.retry = RetrySettings::parse(*retry, fields.pointer("retry"));
}

}  // namespace

bool is_media_type(std::string_view content_type, std::string_view wanted) {
  std::string_view media = content_type.substr(0, content_type.find(';'));
  while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
  return std::equal(media.begin(), media.end(), wanted.begin(), wanted.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

namespace {

template <class Parse>
Json parse_or_refuse(const Request& request, Parse parse) {
  try {
    return parse(request.body);
  } catch (const InvalidJson& error) {
    const std::string_view before = std::string_view(request.body).substr(0, error.offset());
    const std::string_view last_line = before.substr(before.rfind('\n') + 1);
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    throw RequestError(400, "InvalidJson", fmt::format("The body is not valid JSON: {}.", error.what()))
        .with("line", 1 + std::count(before.begin(), before.end(), '\n'))
        .with("column", 1 + std::count_if(last_line.begin(), last_line.end(), starts_character));
  }
}

}  // namespace

Json parse_body(const Request& request) {
  // Checked and kept, nothing more.
  constexpr std::array<std::string_view, 4> kPayloads{"input", "result", "payload", "value"};
  constexpr std::size_t kLong = 64 * 1024;
  check_media_type(request);
  if (request.body.size() <= kLong) return parse_json_body(request);
  return parse_or_refuse(request, [&](std::string_view text) { return parse_packed_json(text, kPayloads); });
}

Json parse_json_body(const Request& request) { return parse_or_refuse(request, parse_json); }

void require_no_body(const Request& request) {
  check_media_type(request);
  if (request.body.empty()) return;
  const Json document = parse_body(request);
  FieldReader(document).done();
}

SubmitRequest parse_submit(Json document, const std::string& at, Kind kind) {
  FieldReader fields(document, at);
  SubmitRequest request;
  request.kind = kind;
  request.type = fields.required("type", fields.name("type"));
  fields.any("input");
  request.queue = fields.name("queue");
  if (kind == Kind::task) {
    read_task_identity(request, fields);
  } else {
    request.idempotency_key = key_field(fields, "workflow_id");
  }
  request.reuse = fields.word("reuse", parse_reuse, "allow_failed, reject, allow_closed, replace");
  request.on_duplicate = fields.word("on_duplicate", parse_on_duplicate, "return, error");
  request.idempotency_ttl = fields.duration("idempotency_ttl");
  request.priority = small_integer(fields, "priority", -kMaxPriority, kMaxPriority);
  request.run_at = fields.time("run_at");
  request.delay = fields.duration("delay");
  if (request.run_at && request.delay) {
    throw InvalidField(fields.pointer("delay"), "excludes \"run_at\"; give one of the two");
  }
  request.timeout = positive(fields, "timeout");
  request.deadline = parse_deadline(fields);
  request.concurrency_key = key_field(fields, "concurrency_key");
  request.dry_run = fields.boolean("dry_run").value_or(false);
  request.id = id_field(fields);
  fields.done();
  for (auto& [name, value] : document.members) {
    if (name == "input") request.input = std::move(value);
  }
  return request;
}

void apply_key_header(SubmitRequest& submission, const Request& request) {
  if (!request.idempotency_key) return;
  const std::string& key = *request.idempotency_key;
  if (auto wrong = check_idempotency_key(key)) throw invalid_idempotency_key(*wrong);
  if (submission.idempotency_key && *submission.idempotency_key != key) {
    throw InvalidField(submission.kind == Kind::workflow ? "/workflow_id" : "/idempotency_key",
                       "is another than the header Idempotency-Key; give one, or the same twice");
  }
  submission.idempotency_key = key;
}

std::string parse_request_key(const Request& request) {
  if (!request.idempotency_key) {
    throw RequestError(400, "IdempotencyKeyRequired",
                       "This operation needs the header Idempotency-Key, so that sending it twice does it once.")
        .with("header", "Idempotency-Key");
  }
  if (auto wrong = check_request_key(*request.idempotency_key)) throw invalid_idempotency_key(*wrong);
  return *request.idempotency_key;
}

std::vector<Json> parse_batch(Json document) {
  FieldReader fields(document);
  fields.array("tasks");
  fields.done();
  bounded_array(fields, "tasks", kMaxItems);
  return std::move(document.members.front().second.items);
}

ClaimCall parse_claim(const Json& document, std::string name_space) {
  FieldReader fields(document);
  ClaimCall call;
  call.name_space = std::move(name_space);
  call.worker = fields.name("worker").value_or("anonymous");
  call.queues = parse_queues(fields);
  parse_kinds(fields, call);
  call.limit = small_integer(fields, "limit", 1, static_cast<std::int32_t>(kMaxItems)).value_or(1);
  call.wait = duration_within(fields, "wait", Duration::zero(), Duration::zero(), kMaxWait);
  call.lease = parse_lease(fields);
  fields.done();
  return call;
}

Heartbeat parse_heartbeat(const Json& document) {
  FieldReader fields(document);
  Heartbeat heartbeat;
  bounded_array(fields, "leases", kMaxItems);
  heartbeat.leases = *fields.strings("leases");
  heartbeat.lease = parse_lease(fields);
  fields.done();
  return heartbeat;
}

std::vector<std::string> parse_return(const Json& document) {
  FieldReader fields(document);
  bounded_array(fields, "leases", kMaxItems);
  std::vector<std::string> leases = *fields.strings("leases");
  fields.done();
  return leases;
}

FinishItem parse_finish_item(const Json& document, const std::string& at) {
  FieldReader fields(document, at);
  FinishItem item;
  item.lease = fields.required("lease", fields.string("lease"));
  const Json* result = fields.any("result");
  const Json* error = fields.object("error");
  fields.done();
  if (result != nullptr && error != nullptr) {
    throw InvalidField(at, "has both a \"result\" and an \"error\"; an attempt ends in one of them");
  }
  if (error != nullptr) {
    item.outcome = parse_failed(*error, at + "/error");
  } else {
    Report::Completed completed;
    if (result != nullptr) completed.result = canonical_json(*result);
    item.outcome = std::move(completed);
  }
  return item;
}

std::vector<FinishItem> parse_finish(const Json& document) {
  FieldReader fields(document);
  const Json& outcomes = bounded_array(fields, "outcomes", kMaxItems);
  std::vector<FinishItem> items;
  items.reserve(outcomes.items.size());
  for (std::size_t i = 0; i < outcomes.items.size(); ++i) {
    items.push_back(parse_finish_item(outcomes.items[i], item_pointer("/outcomes", i)));
  }
  fields.done();
  return items;
}

ListRequest parse_list(std::string_view text, std::string name_space, Kind kind) {
  Query query(text);
  ListRequest request;
  ListFilter& filter = request.filter;
  filter.kind = kind;
  filter.name_space = std::move(name_space);
  filter.queue = query.name("queue");
  filter.type = query.name("type");
  filter.idempotency_key = query.string(kind == Kind::workflow ? "workflow_id" : "idempotency_key");
  if (const auto status = query.string("status")) {
    filter.status = parse_status(*status);
    if (!filter.status) {
      throw invalid_parameter("status",
                              "must be one of pending, running, suspended, completed, failed, cancelled, timed_out");
    }
  }
  request.parent = query.string("parent");
  if (const auto cursor = query.string("cursor")) {
    filter.before = ExecutionId::parse(*cursor);
    if (!filter.before) throw invalid_parameter("cursor", "must be a \"next_cursor\" of an earlier answer");
  }
  filter.limit = static_cast<std::int32_t>(query.integer("limit", 1, 1000).value_or(100));
  query.done();
  return request;
}

}  // namespace hapax::http
