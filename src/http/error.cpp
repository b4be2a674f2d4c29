#include "http/error.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "core/failure.h"
#include "core/field.h"

namespace hapax::http {

namespace {

std::string quoted(std::string_view text) {
  JsonWriter out;
  out.string(text);
  return out.take();
}

Response failure_response(const Failure& failure) {
  switch (failure.code()) {
    case Failure::Code::unavailable:
    case Failure::Code::outcome_unknown:
      spdlog::warn("http: the store is unavailable: {}", failure.what());
      return RequestError(
                 503, "StoreUnavailable",
                 "The store cannot be reached at the moment. The same request may safely be sent again, as long "
                 "as it carries an idempotency key.")
          .with_header("Retry-After", "1")
          .response();
    case Failure::Code::stopped:
      return RequestError(503, "ShuttingDown",
                          "The server is shutting down and did nothing. The same request may safely be sent again, to "
                          "this server when it is back or to another.")
          .with_header("Retry-After", "1")
          .response();
    case Failure::Code::corrupt:
      spdlog::error("http: the store is corrupt: {}", failure.what());
      return RequestError(
                 503, "StoreCorrupt",
                 "The stored data is damaged; sending the request again does not help. The server's log says more.")
          .response();
    case Failure::Code::misuse: break;
  }
  spdlog::error("http: the store was misused: {}", failure.what());
  return RequestError(500, "InternalError", "The server failed at this request. Its log says more.").response();
}

std::string_view code_of(const Refusal& refusal) {
  switch (refusal.code) {
    case Refusal::Code::invalid_argument: return "InvalidRequest";
    case Refusal::Code::idempotency_key_required: return "IdempotencyKeyRequired";
    case Refusal::Code::identity_field_missing: return "IdentityFieldMissing";
    case Refusal::Code::idempotency_conflict: return "IdempotencyConflict";
    case Refusal::Code::task_already_exists: return "TaskAlreadyExists";
    case Refusal::Code::task_already_completed: return "TaskAlreadyCompleted";
  }
  return "InvalidRequest";
}

std::string_view how_it_stands(Status status) {
  switch (status) {
    case Status::pending: return "already exists and is pending";
    case Status::running: return "already exists and is running";
    case Status::suspended: return "already exists and is suspended";
    case Status::completed: return "already completed successfully";
    case Status::failed: return "already failed";
    case Status::cancelled: return "was already cancelled";
    case Status::timed_out: return "already timed out";
  }
  return "already exists";
}

std::string message_of(const Refusal& refusal) {
  if (!refusal.existing) return refusal.message;
  const Execution& existing = *refusal.existing;
  std::string who = existing.idempotency_key ? fmt::format("Task with key '{}'", *existing.idempotency_key)
                                             : fmt::format("An equal task of type '{}'", existing.type);
  if (refusal.code == Refusal::Code::idempotency_conflict) {
    return who +
           " already exists with another input. Use another key for another intent, or send the input of the first.";
  }
  return fmt::format("{} {}", who, how_it_stands(existing.status));
}

}  // namespace

RequestError&& RequestError::with(std::string_view member, std::string text) && {
  members_.emplace_back(member, quoted(text));
  return std::move(*this);
}

RequestError&& RequestError::with(std::string_view member, std::int64_t number) && {
  members_.emplace_back(member, std::to_string(number));
  return std::move(*this);
}

RequestError&& RequestError::with_header(std::string_view name, std::string value) && {
  headers_.emplace_back(name, std::move(value));
  return std::move(*this);
}

RequestError&& RequestError::closing() && {
  close_ = true;
  return std::move(*this);
}

Response RequestError::response() const {
  JsonWriter out;
  out.begin_object().key("error").string(code_).key("message").string(what());
  for (const auto& [name, json] : members_) out.key(name).raw(json);
  out.end_object();
  Response response;
  response.status = status_;
  response.body = out.take();
  response.headers = headers_;
  response.close = close_;
  return response;
}

RequestError invalid_parameter(std::string_view name, const std::string& message) {
  return RequestError(400, "InvalidRequest", fmt::format("The parameter \"{}\" {}.", name, message))
      .with("parameter", std::string(name));
}

RequestError invalid_header(std::string_view name, const std::string& message) {
  return RequestError(400, "InvalidRequest", fmt::format("The header {} {}.", name, message))
      .with("header", std::string(name));
}

RequestError task_not_found(std::string_view id) {
  return {404, "TaskNotFound", fmt::format("There is no task with the id '{}' in this namespace.", id)};
}

void write_invalid_field(JsonWriter& out, std::string_view pointer, std::string_view message) {
  out.begin_object().key("error").string("InvalidRequest").key("message");
  if (pointer.empty()) {
    out.string(fmt::format("The body {}.", message));
  } else {
    out.string(fmt::format("The field \"{}\" {}.", pointer, message));
  }
  out.key("pointer").string(pointer).end_object();
}

Response error_response(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const RequestError& error) {
    return error.response();
  } catch (const InvalidField& error) {
    JsonWriter out;
    write_invalid_field(out, error.pointer(), error.what());
    return json_response(400, out.take());
  } catch (const Failure& failure) {
    return failure_response(failure);
  } catch (const std::exception& error) {
    spdlog::error("http: unexpected: {}", error.what());
  } catch (...) {
    spdlog::error("http: unexpected: something that is no std::exception");
  }
  return RequestError(500, "InternalError", "The server failed at this request. Its log says more.").response();
}

int status_of(const Refusal& refusal) { return refusal.code >= Refusal::Code::idempotency_conflict ? 409 : 400; }

void write_refusal(JsonWriter& out, const Refusal& refusal) {
  out.begin_object().key("error").string(code_of(refusal)).key("message").string(message_of(refusal));
  if (status_of(refusal) == 400) {
    out.key("pointer").string(refusal.pointer).end_object();
    return;
  }
  if (refusal.existing) {
    const Execution& existing = *refusal.existing;
    out.key("existing_execution_id").string(existing.id.to_string());
    out.key("status").string(to_string(existing.status));
    if (refusal.code == Refusal::Code::task_already_completed) {
      out.key("completed_at");
      existing.finished_at ? out.string(format_time(*existing.finished_at)) : out.null();
      if (existing.result) out.key("result").raw(*existing.result);
    }
    if (refusal.code == Refusal::Code::idempotency_conflict) {
      out.key("input_hash");
      refusal.input_hash ? out.string(refusal.input_hash->to_string()) : out.null();
      out.key("existing_input_hash").string(existing.input_hash.to_string());
    }
  }
  out.end_object();
}

}  // namespace hapax::http
