// Errors in the shape of the API: {"error": Code, "message": sentence, …}.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/field.h"
#include "core/json_writer.h"
#include "engine/engine.h"
#include "http/message.h"

namespace hapax::http {

// An error answer that a handler throws.
class RequestError : public std::runtime_error {
 public:
  RequestError(int status, std::string code, const std::string& message)
      : std::runtime_error(message), status_(status), code_(std::move(code)) {}

  // A member of the body besides "error" and "message": "pointer", "parameter", "header".
  RequestError&& with(std::string_view member, std::string text) &&;
  RequestError&& with(std::string_view member, std::int64_t number) &&;
  RequestError&& with_json(std::string_view member, std::string json) &&;
  RequestError&& with_header(std::string_view name, std::string value) &&;
  RequestError&& closing() &&;

  Response response() const;

 private:
  int status_;
  std::string code_;
  std::vector<std::pair<std::string_view, std::string>> members_;  // values are JSON already
  std::vector<std::pair<std::string_view, std::string>> headers_;
  bool close_ = false;
};

// 400 InvalidRequest for a query parameter, a part of the path or a header.
RequestError invalid_parameter(std::string_view name, const std::string& message);
RequestError invalid_header(std::string_view name, const std::string& message);

// 503 Overloaded, before anything was done; `why` is a sentence.
RequestError overloaded(const std::string& why);
RequestError too_many_bytes();

// 400 InvalidIdempotencyKey for the header.
RequestError invalid_idempotency_key(const std::string& message);

// 413 for a body that is too long, as sent or decompressed.
RequestError payload_too_large(std::size_t limit_bytes);

// 404 TaskNotFound, WorkflowNotFound, ActivityNotFound.
RequestError task_not_found(std::string_view id);
RequestError workflow_not_found(std::string_view workflow_id);
RequestError activity_not_found(std::string_view id);

// The error answer for a thrown exception. An unexpected one is logged, and the client gets no details.
Response error_response(std::exception_ptr thrown);

// For a request that is given up: either the server is shutting down and did nothing, or the store did not answer in
// time, and then the outcome is unknown if the request `may_change` something.
Response shutting_down_response();
Response late_response(bool may_change);

// The same error by RFC 9457: type, title, status and detail before our own members. Our "status" of an execution
// becomes "execution_status", because the standard gives that name another meaning.
Response as_problem(const Response& error);

// The body of 400 InvalidRequest for a bad field; an item of a batch has it, too.
void write_invalid_field(JsonWriter& out, const InvalidField& error);

// For a refused submission.
int status_of(const Refusal& refusal);

}  // namespace hapax::http
