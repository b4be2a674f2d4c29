#include "sdk/declarations.h"

#include "core/field.h"
#include "core/json.h"
#include "core/name.h"

namespace hapax::detail {

namespace {

constexpr Milliseconds kLongest = std::chrono::days(36'525);

// The option's text as the engine's value.
template <class Parse>
auto word(std::string_view option, const std::optional<std::string>& text, Parse parse)
    -> decltype(parse(std::string_view())) {
  if (!text) return {};
  auto value = parse(std::string_view(*text));
  if (!value) throw Error("InvalidRequest", "the option " + std::string(option) + " knows no \"" + *text + "\"");
  return value;
}

void check(std::string_view what, const std::optional<std::string>& text,
           std::optional<std::string> (*rule)(std::string_view)) {
  if (!text) return;
  const auto wrong = is_valid_utf8(*text) ? rule(*text) : std::optional<std::string>("must be UTF-8");
  if (wrong) throw Error("InvalidRequest", std::string(what) + " " + *wrong);
}

void check_duration(std::string_view option, const std::optional<Milliseconds>& duration, Milliseconds least) {
  if (!duration || (*duration >= least && *duration <= kLongest)) return;
  throw Error("InvalidRequest",
              std::string(option) + " must be at least " + std::to_string(least.count()) + " ms and at most 100 years");
}

}  // namespace

void Declarations::declare(std::string type, DeclaredTask task, const void* address) {
  if (type != kAnyType) check("the type", type, check_name);
  check("the queue", task.options.queue, check_name);
  std::lock_guard lock(mutex_);
  if (address) types_[address] = type;
  tasks_.insert_or_assign(std::move(type), std::move(task));
}

void Declarations::declare(std::string type, DeclaredWorkflow workflow, const void* address) {
  check("the type", type, check_name);
  check("the queue", workflow.options.queue, check_name);
  std::lock_guard lock(mutex_);
  if (address) types_[address] = type;
  workflows_.insert_or_assign(std::move(type), std::move(workflow));
}

std::string Declarations::type_of(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto found = types_.find(address);
  if (found == types_.end()) {
    throw Error(
        "InvalidRequest",
        "this function was not declared: call app.task(\"name\", function) or app.workflow(\"name\", function) first");
  }
  return found->second;
}

std::optional<std::string> Declarations::queue_of(std::string_view type, Kind kind) const {
  const auto queue_in = [&](const auto& declared) -> std::optional<std::string> {
    const auto found = declared.find(type);
    if (found == declared.end()) return {};
    return found->second.options.queue;
  };
  std::lock_guard lock(mutex_);
  return kind == Kind::task ? queue_in(tasks_) : queue_in(workflows_);
}

std::map<std::string, DeclaredTask> Declarations::tasks() const {
  std::lock_guard lock(mutex_);
  return {tasks_.begin(), tasks_.end()};
}

std::map<std::string, DeclaredWorkflow> Declarations::workflows() const {
  std::lock_guard lock(mutex_);
  return {workflows_.begin(), workflows_.end()};
}

void check_workflow_id(std::string_view workflow_id) {
  check("the workflow id", std::string(workflow_id), check_idempotency_key);
}

void check_signal(std::string_view name) { check("the signal's name", std::string(name), check_name); }

Json parse_document(const std::string& json) {
  if (json.empty()) return {};
  try {
    return parse_json(json);
  } catch (const InvalidJson& error) {
    throw Error("InvalidJson", error.what());
  }
}

namespace {

ExecutionId parse_id(const std::string& text) {
  const auto id = ExecutionId::parse(text);
  if (!id || !id->is_v7()) throw Error("InvalidId", "the id must be a UUID of version 7, as new_id() draws them");
  return *id;
}

}  // namespace

SubmitRequest to_request(const Declarations& declared, std::string_view type, const std::string& input_json,
                         const SubmitOptions& options, Kind kind) {
  check("the type", std::string(type), check_name);
  check("the queue", options.queue, check_name);
  check("the scope", options.scope, check_name);
  check("the key", options.key, check_idempotency_key);
  check("the concurrency key", options.concurrency_key, check_idempotency_key);
  if (options.run_at && options.delay) throw Error("InvalidRequest", "run_at and delay exclude each other");
  const auto outside = [](const std::optional<std::int32_t>& value, std::int32_t low, std::int32_t high) {
    return value && (*value < low || *value > high);
  };
  if (outside(options.priority, -kMaxPriority, kMaxPriority)) {
    throw Error("InvalidRequest", "the priority must be between -1000 and 1000");
  }
  if (outside(options.max_attempts, 1, kMaxAttemptsLimit)) {
    throw Error("InvalidRequest", "max_attempts must be between 1 and 1000");
  }

  check_duration("idempotency_ttl", options.idempotency_ttl, Milliseconds(0));
  check_duration("delay", options.delay, Milliseconds(0));
  check_duration("retry.initial", options.retry.initial, Milliseconds(0));
  check_duration("retry.max", options.retry.max, Milliseconds(0));
  check_duration("timeout", options.timeout, Milliseconds(1));
  check_duration("deadline", options.deadline, Milliseconds(1));
  if (options.retry.factor && !(*options.retry.factor >= 1 && *options.retry.factor <= 100)) {
    throw Error("InvalidRequest", "retry.factor must be between 1 and 100");
  }

  SubmitRequest request;
  request.kind = kind;
  request.type = type;
  request.input = parse_document(input_json);
  request.queue = options.queue ? options.queue : declared.queue_of(type, kind);
  request.idempotency_key = options.key;
  if (options.scope) request.scope = Scope::parse(*options.scope);
  request.identity = word("identity", options.identity, parse_strategy);
  request.identity_fields = options.identity_fields;
  request.reuse = word("reuse", options.reuse, parse_reuse);
  request.on_duplicate = word("on_duplicate", options.on_duplicate, parse_on_duplicate);
  request.idempotency_ttl = options.idempotency_ttl;
  request.priority = options.priority;
  if (options.run_at) request.run_at = std::chrono::floor<Duration>(*options.run_at);
  request.delay = options.delay;
  request.max_attempts = options.max_attempts;
  request.retry = {.initial = options.retry.initial, .factor = options.retry.factor, .max = options.retry.max};
  request.timeout = options.timeout;
  if (options.deadline) request.deadline = *options.deadline;
  request.concurrency_key = options.concurrency_key;
  request.dry_run = options.dry_run;
  if (options.id) request.id = parse_id(*options.id);
  return request;
}

}  // namespace hapax::detail

namespace hapax {

std::string new_id() {
  static IdGenerator ids;
  return ids.next(SystemClock().now()).to_string();
}

}  // namespace hapax
