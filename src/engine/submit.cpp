#include "engine/submit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/canonical_json.h"
#include "core/claim_secret.h"
#include "core/json_writer.h"
#include "engine/check_request.h"

namespace hapax {

namespace {

constexpr std::string_view kDefaultQueue = "default";

Refusal refuse(Refusal::Code code, std::string pointer, std::string message) {
  Refusal refusal;
  refusal.code = code;
  refusal.pointer = std::move(pointer);
  refusal.message = std::move(message);
  return refusal;
}

// The first line of the table that applies: the key, the request's strategy, the type's, the server's.
Strategy choose_strategy(const SubmitRequest& request, const TypeIdentity& type, Submitter submitter) {
  if (request.idempotency_key) return Strategy::caller_provided;
  if (request.identity) return *request.identity;
  return submitter == Submitter::workflow ? type.of_steps() : type.strategy;
}

std::variant<std::optional<Identity>, Refusal> identify(const SubmitRequest& request, const TypeSettings& type,
                                                        const IdentityParts& parts, Strategy strategy) {
  if (request.identity_fields && strategy != Strategy::contextual && !request.idempotency_key) {
    return refuse(Refusal::Code::invalid_argument, "/identity_fields",
                  "identity_fields go only with the identity 'contextual'");
  }
  Identity identity{.hash = {}, .strategy = strategy, .scope = parts.scope};
  if (request.kind == Kind::workflow) {
    if (!request.idempotency_key) {
      return to_refusal(InvalidField("/workflow_id", "is required"));
    }
    return std::optional(workflow_identity(parts.name_space, *request.idempotency_key));
  }
  switch (strategy) {
    case Strategy::always_unique: return std::optional<Identity>();
    case Strategy::caller_provided:
      if (!request.idempotency_key) {
        return refuse(
            Refusal::Code::idempotency_key_required, "/idempotency_key",
            fmt::format("Tasks of type '{}' are identified by the caller: send an idempotency_key", request.type));
      }
      identity.hash = hash_key(parts, *request.idempotency_key);
      return std::optional(identity);
    case Strategy::strict: identity.hash = hash_strict(parts, request.input); return std::optional(identity);
    case Strategy::contextual: {
      const auto& fields = request.identity_fields ? request.identity_fields : type.identity_fields;
      if (!fields || fields->empty()) {
        return refuse(Refusal::Code::invalid_argument, "/identity_fields",
                      "The identity 'contextual' needs identity_fields: the JSON Pointers of the fields that count");
      }
      const auto hash = hash_contextual(parts, request.input, *fields);
      if (const auto* missing = std::get_if<FieldMissing>(&hash)) {
        return refuse(Refusal::Code::identity_field_missing, "/input" + missing->pointer,
                      fmt::format("The input has no field '{}', which is part of the identity", missing->pointer));
      }
      identity.hash = std::get<IdentityHash>(hash);
      return std::optional(identity);
    }
  }
  return std::optional<Identity>();
}

std::string name_of(const Execution& execution) {
  if (execution.kind == Kind::workflow) return fmt::format("Workflow '{}'", execution.idempotency_key.value_or(""));
  if (execution.idempotency_key) return fmt::format("Task with key '{}'", *execution.idempotency_key);
  return fmt::format("An equal task of type '{}'", execution.type);
}

std::string_view how_it_stands(Status status) {
  switch (status) {
    case Status::completed: return "already completed successfully";
    case Status::failed: return "already ran and failed";
    case Status::cancelled: return "was already cancelled";
    case Status::timed_out: return "already ran and timed out";
    case Status::pending: return "already exists and is pending";
    case Status::running: return "already exists and is running";
    case Status::suspended: return "already exists and is suspended";
  }
  return {};
}

Refusal already(Execution existing) {
  Refusal refusal;
  refusal.code =
      existing.status == Status::completed ? Refusal::Code::task_already_completed : Refusal::Code::task_already_exists;
  refusal.message = fmt::format("{} {}", name_of(existing), how_it_stands(existing.status));
  refusal.existing = std::move(existing);
  return refusal;
}

Refusal conflict(Execution existing, const Asked& asked) {
  Refusal refusal;
  refusal.code = Refusal::Code::idempotency_conflict;
  if (existing.id == asked.id) {
    refusal.message = fmt::format(
        "The id {} was submitted with another {}. Draw a new id for every submission, and send it again only"
        " with the same one",
        existing.id.to_string(), existing.type != asked.type ? "type" : "input");
  } else if (existing.type != asked.type) {
    const bool named = existing.kind == Kind::workflow || existing.idempotency_key;
    refusal.message = fmt::format(
        "{} was submitted with another type: '{}', not '{}'. Use {}",
        named ? name_of(existing) : "A task of the same identity", existing.type, asked.type,
        existing.kind == Kind::workflow ? "another workflow id" : "another key, or a scope that they do not share");
  } else {
    refusal.message = fmt::format(
        "{} was submitted with another input. Send the same input to get its result, or use "
        "another key for another intent",
        name_of(existing));
  }
  refusal.existing = std::move(existing);
  refusal.input_hash = asked.input_hash;
  return refusal;
}

}  // namespace

namespace {

std::string queue_of(const SubmitRequest& request, const TypeSettings& type) {
  return request.queue ? *request.queue : type.queue.value_or(std::string(kDefaultQueue));
}

std::string to_json(const std::map<std::string, std::string>& headers) {
  JsonWriter out;
  out.begin_object();
  for (const auto& [name, value] : headers) out.key(name).string(value);
  return canonical_json(parse_json(out.end_object().take()));
}

std::string to_json(const std::vector<std::string>& tags) {
  JsonWriter out;
  out.begin_array();
  for (const std::string& tag : tags) out.string(tag);
  return canonical_json(parse_json(out.end_array().take()));
}

}  // namespace

std::string queue_of(const std::string& name_space, const SubmitRequest& request, const KnownSettings& settings) {
  return queue_of(request, settings.type(name_space, request.type));
}

std::variant<ResolvedSubmission, Refusal> resolve(const std::string& name_space, SubmitRequest request,
                                                  const KnownSettings& settings, const EngineOptions& options,
                                                  const ExecutionId& id, Submitter submitter) {
  try {
    check(request);
  } catch (const InvalidField& error) {
    return to_refusal(error);
  }
  const TypeSettings type = settings.type(name_space, request.type);
  ResolvedSubmission resolved;
  Submission& submission = resolved.submission;
  Execution& execution = submission.execution;

  execution.queue = queue_of(request, type);
  const IdentityParts parts{.name_space = name_space,
                            .type = request.type,
                            .queue = execution.queue,
                            .scope = request.scope ? *request.scope : type.scope.value_or(Scope{})};
  const Strategy strategy = choose_strategy(request, settings.type_identity(name_space, request.type), submitter);
  auto identity = identify(request, type, parts, strategy);
  if (auto* refusal = std::get_if<Refusal>(&identity)) return std::move(*refusal);
  execution.identity = std::get<std::optional<Identity>>(std::move(identity));

  execution.id = request.id.value_or(id);
  execution.kind = request.kind;
  execution.name_space = name_space;
  execution.type = std::move(request.type);
  execution.input = canonical_json(request.input);
  execution.input_hash = hash_input(execution.input);
  execution.idempotency_key = std::move(request.idempotency_key);
  execution.priority = request.priority.value_or(type.priority.value_or(0));
  execution.concurrency_key = std::move(request.concurrency_key);
  if (request.headers && !request.headers->empty()) execution.headers = to_json(*request.headers);
  if (request.tags && !request.tags->empty()) execution.tags = to_json(*request.tags);
  execution.max_attempts = request.max_attempts.value_or(type.max_attempts.value_or(3));
  execution.attempt_limit = execution.max_attempts;
  execution.retry = request.retry.over(type.retry).policy();
  execution.timeout = request.timeout ? request.timeout : type.timeout;

  submission.reuse = request.reuse.value_or(type.reuse.value_or(Reuse::allow_failed));
  submission.run_at = request.run_at;
  submission.delay = request.delay.value_or(Duration(0));
  submission.dry_run = request.dry_run;
  submission.brief = request.brief;
  if (request.run_here) submission.run_here = {std::move(request.run_here->worker), request.run_here->lease, {}};
  if (request.deadline) {
    if (const auto* at = std::get_if<Time>(&*request.deadline)) execution.deadline_at = *at;
    if (const auto* after = std::get_if<Duration>(&*request.deadline)) submission.deadline = *after;
  } else {
    submission.deadline = type.deadline;
  }
  if (execution.identity) {
    submission.idempotency_ttl = request.idempotency_ttl ? request.idempotency_ttl : type.idempotency_ttl;
    if (!submission.idempotency_ttl) {
      submission.idempotency_ttl = settings.queue(name_space, execution.queue).idempotency_ttl;
    }
    if (!submission.idempotency_ttl) submission.idempotency_ttl = options.idempotency_ttl;
  }
  resolved.on_duplicate = request.on_duplicate.value_or(type.on_duplicate.value_or(OnDuplicate::give_back));
  return resolved;
}

std::optional<FoundIdentity> find_key(Store& store, const std::string& name_space, const std::string& type,
                                      const std::optional<Scope>& scope, const std::optional<std::string>& queue,
                                      const std::string& key, const KnownSettings& settings) {
  const TypeSettings in_force = settings.type(name_space, type);
  const std::string in_queue = queue ? *queue : in_force.queue.value_or("default");
  const IdentityParts parts{.name_space = name_space,
                            .type = type,
                            .queue = in_queue,
                            .scope = scope ? *scope : in_force.scope.value_or(Scope{})};
  return store.find_identity_in(name_scope(parts.scope, type, in_queue), hash_key(parts, key));
}

LeaseSecret run_here_secret(std::string_view store_identity, const Submission& submission) {
  static const std::string process = LeaseToken{{}, 1, LeaseSecret::generate()}.to_string();
  JsonWriter material;
  material.begin_array().string("hapax/run_here");
  material.string(store_identity.empty() ? process : store_identity);  // what is in memory ends with this process
  material.string(submission.execution.id.to_string()).string(submission.run_here->worker).end_array();
  const Digest digest = sha256(material.take());
  LeaseSecret secret;
  std::copy_n(digest.begin(), secret.bytes.size(), secret.bytes.begin());
  return unmarked(secret);
}

Asked::Asked(const ResolvedSubmission& resolved)
    : on_duplicate(resolved.on_duplicate),
      id(resolved.submission.execution.id),
      type(resolved.submission.execution.type),
      input_hash(resolved.submission.execution.input_hash),
      dry_run(resolved.submission.dry_run) {}

SubmitResult answer(SubmitOutcome&& outcome, const Asked& asked) {
  if (outcome.execution.damaged) {
    Refusal refusal;
    refusal.code = Refusal::Code::store_corrupt;
    refusal.message = describe_damage(outcome.execution.id);
    return refusal;
  }
  if (outcome.kind == SubmitOutcome::Kind::id_taken) {
    return refuse(Refusal::Code::invalid_id, "/id", "The id is in use in another namespace: draw another one");
  }
  if (outcome.kind == SubmitOutcome::Kind::conflict) return conflict(std::move(outcome.execution), asked);
  const bool created = outcome.kind == SubmitOutcome::Kind::created;
  if (!created && !outcome.claimed && asked.on_duplicate == OnDuplicate::error) {
    Refusal refusal = already(std::move(outcome.execution));
    refusal.result_omitted = outcome.omitted && refusal.code == Refusal::Code::task_already_completed;
    return refusal;
  }
  Receipt receipt;
  receipt.created = created;
  receipt.claimed = outcome.claimed;
  receipt.result_expired = outcome.purged;
  receipt.result_omitted = outcome.omitted;
  receipt.dry_run = asked.dry_run;
  if (outcome.execution.identity) {
    receipt.match = Match{*outcome.execution.identity, outcome.expires_at, outcome.superseded};
  }
  receipt.execution = std::move(outcome.execution);
  return receipt;
}

}  // namespace hapax
