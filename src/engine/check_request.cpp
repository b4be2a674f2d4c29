#include "engine/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/field.h"
#include "core/name.h"
#include "core/notes.h"
#include "core/update.h"

namespace hapax {

namespace {

constexpr Duration kLongest = std::chrono::days(36'525);  // as parse_duration() reads them
constexpr double kMaxRetryFactor = 100;
constexpr std::string_view kMustBeUtf8 = "must be UTF-8";

using Rule = std::optional<std::string> (*)(std::string_view);

[[noreturn]] void refuse(std::string_view pointer, const std::string& what) {
  throw InvalidField(std::string(pointer), what);
}

// Runs a check of something that stands deeper in the document. The place is made up only if it is needed.
template <class Check, class... Steps>
void within(Check&& check, const Steps&... steps) {
  try {
    check();
  } catch (const InvalidField& error) {
    std::string place;
    (fmt::format_to(std::back_inserter(place), "/{}", steps), ...);
    throw InvalidField(place + error.pointer(), error.what(), error.code());
  }
}

[[noreturn]] void refuse_parameter(std::string_view name, const std::string& what) {
  throw InvalidField(InvalidField::Place::parameter, std::string(name), what);
}

void check_text(std::string_view pointer, std::optional<std::string_view> text, Rule rule) {
  if (!text) return;
  if (const auto wrong = rule(*text)) refuse(pointer, *wrong);
}

void check_parameter(std::string_view name, std::optional<std::string_view> text, Rule rule) {
  if (!text) return;
  if (const auto wrong = rule(*text)) refuse_parameter(name, *wrong);
}

std::optional<std::string> check_utf8(std::string_view text) {
  return is_valid_utf8(text) ? std::nullopt : std::optional<std::string>(kMustBeUtf8);
}

void check_range(std::string_view pointer, const std::optional<std::int32_t>& number, std::int32_t low,
                 std::int32_t high) {
  if (!number || (*number >= low && *number <= high)) return;
  refuse(pointer, fmt::format("must be an integer from {} to {}", low, high));
}

void check_duration(std::string_view pointer, const std::optional<Duration>& duration) {
  if (!duration || (*duration >= Duration(0) && *duration <= kLongest)) return;
  refuse(pointer, "must not be negative, and at most 100 years");
}

void check_positive(std::string_view pointer, const std::optional<Duration>& duration) {
  check_duration(pointer, duration);
  if (duration && *duration == Duration(0)) refuse(pointer, "must be longer than 0");
}

void check_time(std::string_view pointer, const std::optional<Time>& time) {
  if (time && parse_time(format_time(*time)) != time) refuse(pointer, "must be a time in the years 1970 to 9999");
}

void check_length(std::string_view pointer, Duration length, Duration low, Duration high) {
  if (length >= low && length <= high) return;
  refuse(pointer, fmt::format("must be from \"{}\" to \"{}\"", format_duration(low), format_duration(high)));
}

// ---- submissions

void check_retry(const RetrySettings& retry) {
  check_duration("/retry/initial", retry.initial);
  check_duration("/retry/max", retry.max);
  if (retry.factor && !(*retry.factor >= 1 && *retry.factor <= kMaxRetryFactor)) {
    refuse("/retry/factor", "must be a number from 1 to 100");
  }
  if (retry.initial && retry.max && *retry.max < *retry.initial) {
    refuse("/retry/max", "must not be shorter than \"initial\"");
  }
}

void check_identity_fields(const std::vector<std::string>& fields) {
  if (fields.empty() || fields.size() > kMaxIdentityFields) {
    refuse("/identity_fields", fmt::format("must name 1 to {} fields of the input", kMaxIdentityFields));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string place = fmt::format("/identity_fields/{}", i);
    check_text(place, fields[i], check_utf8);
    if (!is_json_pointer(fields[i])) {
      refuse(place, fmt::format("must be a JSON Pointer like \"/order_id\", not \"{}\"", fields[i]));
    }
  }
}

// A workflow is known by its id alone, and its turns are tried until one is accepted.
void check_is_for_tasks(const SubmitRequest& request) {
  const auto refuse_if = [](bool given, std::string_view pointer) {
    if (given) refuse(pointer, "is for tasks: a workflow is known by its workflow_id, and its turns are not counted");
  };
  refuse_if(request.scope.has_value(), "/scope");
  refuse_if(request.identity.has_value(), "/identity");
  refuse_if(request.identity_fields.has_value(), "/identity_fields");
  refuse_if(request.max_attempts.has_value(), "/max_attempts");
  refuse_if(request.retry != RetrySettings{}, "/retry");
}

}  // namespace

namespace {

constexpr std::size_t kMaxHeaderBytes = 4096, kMaxTags = 16;

void check_headers(const std::map<std::string, std::string>& headers) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : headers) {
    check_text("/headers/" + name, name, check_name);
    bytes += name.size() + value.size();
  }
  if (bytes > kMaxHeaderBytes) {
    refuse("/headers", fmt::format("must have at most {} bytes of names and values, not {}", kMaxHeaderBytes, bytes));
  }
}

void check_tags(const std::vector<std::string>& tags) {
  if (tags.size() > kMaxTags) refuse("/tags", fmt::format("must have at most {} items, not {}", kMaxTags, tags.size()));
  for (std::size_t i = 0; i < tags.size(); ++i) {
    within([&] { check_text("", tags[i], check_name); }, "tags", i);
  }
}

void check_run_here(const SubmitRequest& request) {
  if (request.kind == Kind::workflow) refuse("/run_here", "is for tasks: the turns of a workflow are claimed");
  const auto check_claim = [&] {
    check_text("/worker", request.run_here->worker, check_name);
    check_lease(request.run_here->lease);
  };
  within(check_claim, "run_here");
}

}  // namespace

void check(const SubmitRequest& request) {
  check_text("/type", request.type, check_name);
  check_text("/queue", request.queue, check_name);
  const bool is_workflow = request.kind == Kind::workflow;
  check_text(is_workflow ? "/workflow_id" : "/idempotency_key", request.idempotency_key, check_idempotency_key);
  if (is_workflow) check_is_for_tasks(request);
  if (request.scope && request.scope->tag == Scope::Tag::custom) {
    check_text("/scope", request.scope->name, check_name);
  }
  if (request.identity_fields) check_identity_fields(*request.identity_fields);
  check_range("/max_attempts", request.max_attempts, 1, kMaxAttemptsLimit);
  check_retry(request.retry);
  check_duration("/idempotency_ttl", request.idempotency_ttl);
  check_range("/priority", request.priority, -kMaxPriority, kMaxPriority);
  check_time("/run_at", request.run_at);
  check_duration("/delay", request.delay);
  if (request.run_at && request.delay) refuse("/delay", "excludes \"run_at\"; give one of the two");
  check_positive("/timeout", request.timeout);
  if (request.deadline) {
    if (const auto* after = std::get_if<Duration>(&*request.deadline)) check_positive("/deadline", *after);
    if (const auto* time = std::get_if<Time>(&*request.deadline)) check_time("/deadline", *time);
  }
  check_text("/concurrency_key", request.concurrency_key, check_idempotency_key);
  if (request.headers) check_headers(*request.headers);
  if (request.tags) check_tags(*request.tags);
  if (request.run_here) check_run_here(request);
  if (request.id && !request.id->is_v7()) {
    throw InvalidField("/id", "must be a UUID of version 7, as 019bf2d4-8c1e-7a3b-9f00-5d1c2e3f4a5b", "InvalidId");
  }
}

void check_batch(std::size_t submissions) {
  if (submissions <= SubmitVerbs::kMaxBatch) return;
  refuse("/tasks", fmt::format("must have 1 to {} items, not {}", SubmitVerbs::kMaxBatch, submissions));
}

// ---- workers

namespace {

// Each a name, none of them twice.
void check_names(const char* member, const char* what, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto check_one = [&] {
      check_text("", names[i], check_name);
      const auto end = names.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(names.begin(), end, names[i]) != end) {
        refuse("", fmt::format("names the {} \"{}\" again", what, names[i]));
      }
    };
    within(check_one, member, i);
  }
}

}  // namespace

namespace {

constexpr std::int64_t kMaxPid = 4'294'967'295;

void check_origin(const WorkerOrigin& origin) {
  const auto said = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  check_text("/sdk/name", said(origin.sdk), check_name);
  check_text("/sdk/version", said(origin.version), check_name);
  check_text("/host", said(origin.host), check_name);
  if (origin.pid < 0 || origin.pid > kMaxPid) refuse("/pid", fmt::format("must be an integer from 1 to {}", kMaxPid));
}

}  // namespace

void check(const ClaimCall& call) {
  check_text("/worker", call.worker, check_name);
  if (call.queues.empty() || call.queues.size() > kMaxClaimQueues) {
    refuse("/queues", fmt::format("must name 1 to {} queues, not {}", kMaxClaimQueues, call.queues.size()));
  }
  check_names("queues", "queue", call.queues);
  if (call.types.size() > kMaxClaimTypes) {
    refuse("/types", fmt::format("must name at most {} types, not {}", kMaxClaimTypes, call.types.size()));
  }
  check_names("types", "type", call.types);
  if (!call.tasks && !call.workflows) refuse("/kinds", "must name task, workflow or both");
  if (!call.claim_id.empty()) check_text("/claim_id", call.claim_id, check_name);
  check_range("/limit", call.limit, 1, kMaxClaims);
  check_length("/wait", call.wait, Duration(0), kMaxWait);
  check_lease(call.lease);
  check_origin(call.origin);
}

void check_lease(Duration lease) { check_length("/lease", lease, kShortestLease, kLongestLease); }

void check(const Extension& extension) {
  if (extension.progress && extension.progress->size() > kMaxProgressBytes) {
    refuse("/progress", fmt::format("must have at most {} bytes", kMaxProgressBytes));
  }
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < extension.log.size(); ++i) {
    within([&] { check_text("", extension.log[i], check_utf8); }, "log", i);
    bytes += extension.log[i].size();
  }
  if (bytes > kMaxLogBytes) refuse("/log", fmt::format("must have at most {} bytes, not {}", kMaxLogBytes, bytes));
}

// A lease of no length is given back.
void check(std::span<const Extension> extensions) {
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    if (extensions[i].lease != Duration(0)) check_lease(extensions[i].lease);
    within([&] { check(extensions[i]); }, "leases", i);
  }
}

void check(const AttemptError& error) {
  check_text("/type", error.type, check_name);
  check_text("/message", error.message, check_utf8);
  check_text("/stack", error.stack, check_utf8);
  if (error.stack && error.stack->size() > kMaxStackBytes) {
    refuse("/stack", fmt::format("must have at most {} bytes, not {}", kMaxStackBytes, error.stack->size()));
  }
}

namespace {

void check_retry_after(const std::variant<Duration, Time>& after) {
  if (const auto* duration = std::get_if<Duration>(&after)) check_duration("/retry_after", *duration);
  if (const auto* time = std::get_if<Time>(&after)) check_time("/retry_after", *time);
}

}  // namespace

void check(const Report& report) {
  if (const auto* snoozed = std::get_if<Report::Snoozed>(&report.outcome)) check_duration("/snooze", snoozed->by);
  const auto* failed = std::get_if<Report::Failed>(&report.outcome);
  if (!failed) return;
  const auto check_error = [&] {
    check(failed->error);
    if (failed->retry_after) check_retry_after(*failed->retry_after);
  };
  within(check_error, "error");
}

void check(std::span<const Report> reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    within([&] { check(reports[i]); }, "outcomes", i);
  }
}

namespace {

void check_start(const SubmitRequest& start) {
  if (start.id) refuse("/id", "is given by the server, from the run and the step");
  if (start.run_here) refuse("/run_here", "is not for steps: a worker begins a step within its turn, or claims it");
  check(start);
}

void check_command(const TurnRequest::Command& command) {
  const Event& event = command.event;
  switch (event.kind) {
    case Event::Kind::task:
    case Event::Kind::child:
      if (command.within_turn) break;
      if (!command.start) refuse("/start", "is required");
      within([&] { check_start(*command.start); }, "start");
      break;
    case Event::Kind::sleep:
      if (!event.until) refuse("/until", "is required");
      check_time("/until", event.until);
      break;
    case Event::Kind::wait_signal:
      check_text("/name", event.name, check_idempotency_key);
      check_time("/until", event.until);
      break;
    case Event::Kind::cancel_step: {
      const std::int32_t step = cancelled_step(event);
      if (step < 1 || step >= event.step) refuse("/value", "must be the number of an earlier step");
      if (!event.name.empty()) check_text("/name", event.name, check_name);
      break;
    }
    case Event::Kind::send_signal:
      check_text("/name", event.name, check_signal_name);
      check_text("/workflow_id", event.key.value_or(""), check_idempotency_key);
      break;
    case Event::Kind::publish:
      check_text("/name", event.name, is_update_answer(event.name) ? check_idempotency_key : check_signal_name);
      if (!event.value) refuse("/value", "is required");
      break;
    default: check_text("/name", event.name, check_idempotency_key); break;
  }
  if (event.error) within([&] { check(*event.error); }, "error");
}

void check_commands(const std::vector<TurnRequest::Command>& commands) {
  if (commands.size() > kMaxCommands) refuse("/commands", fmt::format("must have at most {} items", kMaxCommands));
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::int32_t step = commands[i].event.step;
    const auto check_one = [&] {
      if (step < 1) refuse("/step", "must be at least 1: steps are counted from 1");
      if (i > 0 && step != commands[i - 1].event.step + 1) {
        refuse("/step", "must be one more than that of the command before");
      }
      check_command(commands[i]);
    };
    within(check_one, "commands", i);
  }
}

}  // namespace

void check(const TurnRequest& turn) {
  if (turn.seen < 0) refuse("/seen", "must not be negative");
  if (turn.step) within([&] { check(*turn.step); }, "step");
  check_commands(turn.commands);
  if (const auto* failed = std::get_if<Turn::Failed>(&turn.end)) within([&] { check(failed->error); }, "end", "error");
  if (const auto* stuck = std::get_if<Turn::Stuck>(&turn.end)) within([&] { check(stuck->error); }, "end", "error");
}

void check(std::span<const TurnRequest> turns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    within([&] { check(turns[i]); }, "turns", i);
  }
}

// ---- control

void check_control_key(std::string_view request_key) {
  const auto wrong = check_request_key(request_key);
  if (!wrong) return;
  throw InvalidField(InvalidField::Place::header, "Idempotency-Key", *wrong, "InvalidIdempotencyKey");
}

void check(const UpdateRequest& request) {
  check_control_key(request.request_key);
  check_parameter("name", request.name, check_update_name);
}

void check(const ControlRequest& request) {
  check_control_key(request.request_key);
  if (request.action == ControlRequest::Action::cancel) check_duration("/grace", request.grace);
  if (request.action == ControlRequest::Action::signal) {
    check_parameter("name", request.signal, check_signal_name);
  }
  if (request.action == ControlRequest::Action::fork) {
    if (request.from_step < 0) refuse("/from_step", "must be at least 1, or 0 for the start");
    if (!request.fork_workflow_id.empty()) {
      check_text("/workflow_id", request.fork_workflow_id, check_idempotency_key);
    }
  }
}

// ---- reading

void check_page_limit(std::int32_t limit) {
  if (limit >= 1 && limit <= kMaxPage) return;
  refuse_parameter("limit", fmt::format("must be a whole number from 1 to {}, not \"{}\"", kMaxPage, limit));
}

void check(const ListFilter& filter) {
  check_parameter("queue", filter.queue, check_name);
  check_parameter("type", filter.type, check_name);
  check_parameter(filter.kind == Kind::workflow ? "workflow_id" : "idempotency_key", filter.idempotency_key,
                  check_idempotency_key);
  check_page_limit(filter.limit);
}

void check_identity_query(const std::string& type, const std::optional<Scope>& scope,
                          const std::optional<std::string>& queue, const std::string& key) {
  if (!type.empty()) check_parameter("type", type, check_name);
  check_parameter("key", key, check_idempotency_key);
  check_parameter("queue", queue, check_name);
  if (scope && scope->tag == Scope::Tag::custom) check_parameter("scope", scope->name, check_name);
  if (!type.empty()) return;
  // The type is part of an identity under its own scope, and says where else to look.
  if (!scope || scope->tag == Scope::Tag::type) refuse_parameter("type", "is required");
  if (scope->tag == Scope::Tag::queue && !queue) {
    refuse_parameter("queue", "is required under the scope queue; or name a type, whose queue is taken");
  }
}

// ---- settings: their own reader has the rules

namespace {

template <class Settings>
void check_by_reading(const Settings& settings) {
  try {
    Settings::parse(parse_json(settings.to_json()));
  } catch (const InvalidJson&) {
    refuse("", "must be UTF-8");
  }
}

}  // namespace

void check_setting_name(std::string_view name) { check_parameter("name", name, check_name); }

void check(const QueueSettings& settings) { check_by_reading(settings); }

void check(const TypeSettings& settings) {
  check_text("/queue", settings.queue, check_name);
  if (settings.scope && settings.scope->tag == Scope::Tag::custom) {
    check_text("/scope", settings.scope->name, check_name);
  }
  check_retry(settings.retry);  // a factor that is no number has no JSON
  check_by_reading(settings);
}

void check_activity(std::string_view id) {
  try {
    check_activity_id(id);
  } catch (const InvalidField& wrong) {
    refuse_parameter("id", wrong.what());
  }
}

void check(const ActivitySettings& settings) { check_by_reading(settings); }

Refusal to_refusal(const InvalidField& error) {
  Refusal refusal;
  refusal.code = error.code() == "InvalidId" ? Refusal::Code::invalid_id : Refusal::Code::invalid_argument;
  refusal.pointer = error.pointer();
  refusal.message = error.sentence();
  return refusal;
}

}  // namespace hapax
