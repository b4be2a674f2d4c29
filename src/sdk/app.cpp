#include "hapax/app.h"

#include "core/field.h"
#include "core/json.h"
#include "core/name.h"
#include "sdk/app_state.h"
#include "sdk/worker.h"

namespace hapax {

namespace detail {

namespace {

constexpr Milliseconds kLongest = std::chrono::days(36'525);

// The option's word as the engine's value.
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
  throw Error("InvalidRequest", std::string(option) + " must be at least " + std::to_string(least.count()) +
                                    " ms and at most 100 years");
}

Json parse_input(const std::string& input_json) {
  if (input_json.empty()) return {};
  try {
    return parse_json(input_json);
  } catch (const InvalidJson& error) {
    throw Error("InvalidJson", error.what());
  }
}

}  // namespace

void AppState::declare(std::string type, DeclaredTask task, const void* address) {
  if (type != kAnyType) check("the type", type, check_name);
  check("the queue", task.options.queue, check_name);
  std::lock_guard lock(mutex_);
  if (address) types_[address] = type;
  tasks_.insert_or_assign(std::move(type), std::move(task));
}

std::string AppState::type_of(const void* address) const {
  std::lock_guard lock(mutex_);
  const auto found = types_.find(address);
  if (found == types_.end()) {
    throw Error("InvalidRequest", "this function was not declared: call app.task(\"name\", function) first");
  }
  return found->second;
}

std::optional<std::string> AppState::queue_of(std::string_view type) const {
  std::lock_guard lock(mutex_);
  const auto found = tasks_.find(type);
  if (found == tasks_.end()) return {};
  return found->second.options.queue;
}

std::map<std::string, DeclaredTask> AppState::tasks() const {
  std::lock_guard lock(mutex_);
  return {tasks_.begin(), tasks_.end()};
}

SubmitRequest to_request(const AppState& state, std::string_view type, const std::string& input_json,
                         const SubmitOptions& options) {
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

  check_duration("idempotency_ttl", options.idempotency_ttl, Milliseconds(1));
  check_duration("delay", options.delay, Milliseconds(0));
  check_duration("retry.initial", options.retry.initial, Milliseconds(0));
  check_duration("retry.max", options.retry.max, Milliseconds(0));
  check_duration("timeout", options.timeout, Milliseconds(1));
  check_duration("deadline", options.deadline, Milliseconds(1));
  if (options.retry.factor && !(*options.retry.factor >= 1 && *options.retry.factor <= 100)) {
    throw Error("InvalidRequest", "retry.factor must be between 1 and 100");
  }

  SubmitRequest request;
  request.type = type;
  request.input = parse_input(input_json);
  request.queue = options.queue ? options.queue : state.queue_of(type);
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
  return request;
}

}  // namespace detail

using detail::AppState;
using detail::HandleState;

App open(const std::string& url, const OpenOptions& options) {
  return detail::translating([&] {
    try {
      return App(std::make_shared<AppState>(open_engine(url, {.token = options.token, .name_space = options.name_space}),
                                            options.name_space));
    } catch (const BadUrl& error) {
      throw Error("InvalidRequest", error.what());
    }
  });
}

void App::declare(std::string type, TaskOptions options, detail::Handler handler, const void* address) {
  state_->declare(std::move(type), {std::move(options), std::move(handler)}, address);
}

std::string App::type_of(const void* address) const { return state_->type_of(address); }

namespace {

std::vector<SubmitResult> submit_all(AppState& state, std::vector<SubmitRequest> requests) {
  return detail::translating([&] {
    return await<std::vector<SubmitResult>>(
        [&](auto reply) { state.engine().submit(state.name_space(), std::move(requests), std::move(reply)); });
  });
}

}  // namespace

Handle App::submit_json(std::string_view type, std::string input_json, const SubmitOptions& options) {
  std::vector<SubmitRequest> requests;
  requests.push_back(detail::to_request(*state_, type, input_json, options));
  auto results = submit_all(*state_, std::move(requests));
  auto handle = std::make_shared<HandleState>(state_, std::move(results.at(0)));
  handle->receipt();  // a refusal is thrown here and now
  return Handle(std::move(handle));
}

std::vector<Handle> App::submit_batch(const std::vector<BatchItem>& items) {
  if (items.size() > Engine::kMaxBatch) throw Error("InvalidRequest", "a batch has at most 1000 submissions");
  std::vector<SubmitRequest> requests;
  for (const BatchItem& item : items) {
    requests.push_back(detail::to_request(*state_, item.type, item.input_json, item.options));
  }
  std::vector<Handle> handles;
  if (requests.empty()) return handles;
  for (SubmitResult& result : submit_all(*state_, std::move(requests))) {
    handles.push_back(Handle(std::make_shared<HandleState>(state_, std::move(result))));
  }
  return handles;
}

Handle App::submit_json_in(sqlite3* connection, std::string_view type, std::string input_json,
                           const SubmitOptions& options) {
  const auto& submit_in = state_->opened().submit_in;
  if (!submit_in) {
    throw Error("InvalidRequest", "submit_in() needs an app opened on a sqlite: URL, the file of that connection");
  }
  auto handle = detail::translating([&] {
    return std::make_shared<HandleState>(
        state_, submit_in(connection, state_->name_space(), detail::to_request(*state_, type, input_json, options)));
  });
  handle->receipt();
  return Handle(std::move(handle));
}

Handle App::find(std::string_view id) {
  const auto parsed = ExecutionId::parse(id);
  auto execution = detail::translating(
      [&] { return parsed ? state_->engine().find(state_->name_space(), *parsed) : std::optional<Execution>(); });
  if (!execution) throw Error("TaskNotFound", "there is no task '" + std::string(id) + "'");
  Receipt receipt;
  receipt.execution = *std::move(execution);
  return Handle(std::make_shared<HandleState>(state_, std::move(receipt)));
}

void App::work(const WorkOptions& options) {
  detail::Worker worker(*state_, options);
  worker.run();
}

void App::stop() { state_->stop_requested = true; }

}  // namespace hapax
