#include "sdk/declarations.h"

#include <utility>

#include "core/field.h"
#include "core/json.h"
#include "core/name.h"
#include "engine/check_request.h"
#include "sdk/errors.h"

namespace hapax::detail {

namespace {

[[noreturn]] void refuse(const std::string& pointer, const std::string& message) {
  throw to_error(InvalidField(pointer, message));
}

// The option's text as the engine's value.
template <class Parse>
auto word(const std::string& pointer, const std::optional<std::string>& text, Parse parse, const std::string& words)
    -> decltype(parse(std::string_view())) {
  if (!text) return {};
  auto value = parse(std::string_view(*text));
  if (!value) refuse(pointer, "must be one of " + words + ", not \"" + *text + "\"");
  return value;
}

void check_text(const std::string& pointer, const std::string& text,
                std::optional<std::string> (*rule)(std::string_view)) {
  if (const auto wrong = rule(text)) refuse(pointer, *wrong);
}

std::optional<Strategy> strategy_of(const std::optional<IdentityOption>& identity) {
  const auto name = identity ? std::optional(identity->strategy) : std::nullopt;
  return word("/identity", name, parse_strategy, "caller_provided, strict, contextual, always_unique");
}

// Those of contextual("/a", "/b"), or the option beside it.
std::optional<std::vector<std::string>> fields_of(const std::optional<IdentityOption>& identity,
                                                  const std::optional<std::vector<std::string>>& fields) {
  return identity && !identity->fields.empty() ? std::optional(identity->fields) : fields;
}

std::optional<Reuse> reuse_of(const std::optional<std::string>& reuse) {
  return word("/reuse", reuse, parse_reuse, "allow_failed, reject, allow_closed, replace");
}

RetrySettings retry_of(const RetryOptions& retry) {
  return {.initial = retry.initial, .factor = retry.factor, .max = retry.max};
}

TypeSettings settings_of(const TaskOptions& options) {
  TypeSettings settings;
  if (options.queue != TaskOptions().queue) settings.queue = options.queue;
  settings.identity = strategy_of(options.identity);
  settings.identity_fields = fields_of(options.identity, options.identity_fields);
  settings.reuse = reuse_of(options.reuse);
  settings.max_attempts = options.max_attempts;
  settings.retry = retry_of(options.retry);
  settings.timeout = options.timeout;
  translating([&] { hapax::check(settings); });
  return settings;
}

}  // namespace

namespace {

[[noreturn]] void refuse_declaration(const std::string& sentence) {
  throw Error("InvalidRequest", sentence, {.pointer = "/type"});
}

}  // namespace

// With the lock held.
void Declarations::check_new(bool is_taken, const std::string& type, const std::string& what,
                             const void* address) const {
  if (is_taken) refuse_declaration("there is a " + what + " '" + type + "' already: declare each type once");
  const auto named = types_.find(address);
  if (address && named != types_.end()) {
    refuse_declaration("this function is declared as '" + named->second + "' already: a function has one name; for '" +
                       type + "', declare a lambda that calls it");
  }
}

void Declarations::declare(std::string type, DeclaredTask task, const void* address) {
  if (type.empty())
    refuse_declaration("a task needs a name; for all types without a task of their own, use any_task()");
  check_text("/type", type, check_name);
  check_text("/queue", task.options.queue, check_name);
  const TypeSettings settings = settings_of(task.options);
  std::lock_guard lock(mutex_);
  check_new(tasks_.contains(type), type, "task", address);
  if (address) types_[address] = type;
  if (settings != TypeSettings()) untold_.insert_or_assign(type, settings);
  tasks_.emplace(std::move(type), std::move(task));
}

void Declarations::declare_any(DeclaredTask task) {
  check_text("/queue", task.options.queue, check_name);
  std::lock_guard lock(mutex_);
  if (!tasks_.emplace(kAnyType, std::move(task)).second) refuse_declaration("there is an any_task() already");
}

void Declarations::declare(std::string type, DeclaredWorkflow workflow, const void* address) {
  check_text("/type", type, check_name);
  check_text("/queue", workflow.options.queue, check_name);
  std::lock_guard lock(mutex_);
  check_new(workflows_.contains(type), type, "workflow", address);
  if (address) types_[address] = type;
  workflows_.emplace(std::move(type), std::move(workflow));
}

void Declarations::mock(const std::string& type, Handler handler) {
  std::lock_guard lock(mutex_);
  tasks_[type].handler = std::move(handler);
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

std::optional<std::string> Declarations::find_type(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto found = types_.find(address);
  return address && found != types_.end() ? std::optional(found->second) : std::nullopt;
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

std::map<std::string, TypeSettings> Declarations::take_untold() {
  std::lock_guard lock(mutex_);
  return std::exchange(untold_, {});
}

void Declarations::put_back(std::map<std::string, TypeSettings> untold) {
  std::lock_guard lock(mutex_);
  untold_.merge(untold);  // what was declared since is newer
}

void check_step_name(std::string_view name) { check_text("/name", std::string(name), check_idempotency_key); }

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
  if (id) return *id;
  throw to_error(InvalidField("/id", "must be a UUID of version 7, as new_id() draws them", "InvalidId"));
}

}  // namespace

SubmitRequest to_request(const Declarations& declared, std::string_view type, const std::string& input_json,
                         const SubmitOptions& options, Kind kind) {
  SubmitRequest request;
  request.kind = kind;
  request.type = type;
  request.input = parse_document(input_json);
  request.queue = options.queue ? options.queue : declared.queue_of(type, kind);
  request.idempotency_key = options.key;
  if (options.scope) request.scope = Scope::parse(*options.scope);
  request.identity = strategy_of(options.identity);
  request.identity_fields = fields_of(options.identity, options.identity_fields);
  request.reuse = reuse_of(options.reuse);
  request.on_duplicate = word("/on_duplicate", options.on_duplicate, parse_on_duplicate, "return, error");
  request.idempotency_ttl = options.idempotency_ttl;
  request.priority = options.priority;
  if (options.run_at) request.run_at = std::chrono::floor<Duration>(*options.run_at);
  request.delay = options.delay;
  request.max_attempts = options.max_attempts;
  request.retry = retry_of(options.retry);
  request.timeout = options.timeout;
  if (options.deadline) request.deadline = *options.deadline;
  request.concurrency_key = options.concurrency_key;
  if (!options.headers.empty()) request.headers = options.headers;
  if (!options.tags.empty()) request.tags = options.tags;
  request.dry_run = options.dry_run;
  if (options.id) request.id = parse_id(*options.id);
  translating([&] { hapax::check(request); });
  return request;
}

}  // namespace hapax::detail

namespace hapax {

std::string new_id() {
  static IdGenerator ids;
  return ids.next(SystemClock().now()).to_string();
}

}  // namespace hapax
