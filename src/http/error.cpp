#include "http/error.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include "core/canonical_json.h"
#include "core/failure.h"
#include "core/field.h"
#include "http/damage_log.h"
#include "wire/error_code.h"

namespace hapax::http {

namespace {

constexpr int kRepairSeconds = 60;  // damage is repaired by people

std::string quoted(std::string_view text) {
  JsonWriter out;
  out.string(text);
  return out.take();
}

// "TaskAlreadyExists" as words: "Task already exists".
std::string title_of(std::string_view code) {
  std::string title;
  for (const char c : code) {
    const bool begins_word = c >= 'A' && c <= 'Z' && !title.empty();
    if (begins_word) title += ' ';
    title += begins_word ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return title;
}

RequestError unavailable(std::string code, const std::string& message, int retry_after_s = 1) {
  return RequestError(503, std::move(code), message).with_header("Retry-After", std::to_string(retry_after_s));
}

// What happened, if clients may know it, before what it means for them.
std::string with_cause(const Failure& failure, std::string_view meaning) {
  return failure.for_clients().empty() ? std::string(meaning) : fmt::format("{} {}", failure.for_clients(), meaning);
}

Response failure_response(const Failure& failure) {
  switch (failure.code()) {
    case Failure::Code::unavailable:
      spdlog::warn("http: the store is unavailable: {}", failure.what());
      return unavailable(
                 "StoreUnavailable",
                 with_cause(failure,
                            "The store cannot be reached or used at the moment; nothing was done. The same request "
                            "may safely be sent again. If this lasts, the server's log says why, and `hapax doctor` "
                            "and `hapax migrate` may help."))
          .response();
    case Failure::Code::outcome_unknown:
      spdlog::warn("http: the outcome of a commit is unknown: {}", failure.what());
      return unavailable("OutcomeUnknown",
                         with_cause(failure,
                                    "The store did not confirm the commit, so its outcome is unknown. The same request "
                                    "may safely be sent again if it carries an id or an idempotency key."))
          .response();
    case Failure::Code::stopped:
      return unavailable("ShuttingDown",
                         "The server is shutting down and did nothing. The same request may safely be sent again, to "
                         "this server when it is back or to another.")
          .response();
    case Failure::Code::corrupt:
      if (!failure.for_clients().empty()) {
        log_damage(failure.what());
        return unavailable("StoreCorrupt",
                           failure.for_clients() + " `hapax doctor --deep` lists everything that is damaged.",
                           kRepairSeconds)
            .response();
      }
      spdlog::error("http: the store is corrupt: {}", failure.what());
      return unavailable(
                 "StoreCorrupt",
                 "The stored data is damaged, and requests fail until it is repaired. The server's log says more.",
                 kRepairSeconds)
          .response();
    case Failure::Code::misuse: break;
  }
  spdlog::error("http: the store cannot be used: {}", failure.what());
  return unavailable("StoreUnavailable",
                     "The store cannot be used as it is: its schema is missing or of another version, or a permission "
                     "is missing. "
                     "Nothing was done. `hapax migrate` repairs the schema; the server's log says more.",
                     kRepairSeconds)
      .response();
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

RequestError&& RequestError::with_json(std::string_view member, std::string json) && {
  members_.emplace_back(member, std::move(json));
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

RequestError overloaded(const std::string& why) {
  return unavailable("Overloaded", why + " Nothing was done; the same request may safely be sent again.");
}

RequestError invalid_idempotency_key(const std::string& message) {
  return RequestError(400, "InvalidIdempotencyKey", fmt::format("The header Idempotency-Key {}.", message))
      .with("header", "Idempotency-Key");
}

RequestError payload_too_large(std::size_t limit_bytes) {
  return {413, "PayloadTooLarge", fmt::format("The body is longer than the limit of {} bytes.", limit_bytes)};
}

RequestError too_many_bytes() { return overloaded("The server has reached its limit of request bytes in hand."); }

RequestError task_not_found(std::string_view id) {
  const auto kind = ControlOutcome::Kind::not_found;
  return {404, std::string(wire::to_string(kind)), wire::describe(kind, id)};
}

RequestError workflow_not_found(std::string_view workflow_id) {
  const auto kind = ControlOutcome::Kind::not_found;
  return {404, std::string(wire::to_string(kind, Kind::workflow)), wire::describe(kind, workflow_id, Kind::workflow)};
}

RequestError activity_not_found(std::string_view id) {
  return {404, "ActivityNotFound", fmt::format("There is no activity with the id '{}' in this namespace.", id)};
}

void write_invalid_field(JsonWriter& out, const InvalidField& error) {
  using Place = InvalidField::Place;
  const Place place = error.place();
  out.begin_object().key("error").string(error.code()).key("message").string(error.sentence());
  out.key(place == Place::body ? "pointer" : place == Place::parameter ? "parameter" : "header");
  out.string(error.name()).end_object();
}

Response error_response(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const RequestError& error) {
    return error.response();
  } catch (const InvalidField& error) {
    JsonWriter out;
    write_invalid_field(out, error);
    return json_response(400, out.take());
  } catch (const DecidedByFile& refusal) {
    return RequestError(409, "DecidedByFile", std::string(refusal.what()) + ".").response();
  } catch (const Failure& failure) {
    return failure_response(failure);
  } catch (const std::exception& error) {
    spdlog::error("http: unexpected: {}", error.what());
  } catch (...) {
    spdlog::error("http: unexpected: not a std::exception");
  }
  return RequestError(500, "InternalError", "The server failed to handle this request. Its log says more.").response();
}

Response shutting_down_response() {
  return failure_response(Failure(Failure::Code::stopped, "the server is shutting down"));
}

Response late_response(bool may_change) {
  const auto code = may_change ? Failure::Code::outcome_unknown : Failure::Code::unavailable;
  return failure_response(
      Failure(code, "no answer came within the time limit", "The store did not answer within the time limit."));
}

Response as_problem(const Response& error) {
  const Json document = parse_json(error.body);
  const Json* code = document.find("error");
  const Json* message = document.find("message");
  if (code == nullptr || message == nullptr) return error;
  JsonWriter out;
  out.begin_object().key("type").string("urn:hapax:error:" + code->text).key("title").string(title_of(code->text));
  out.key("status").integer(error.status).key("detail").string(message->text);
  for (const auto& [name, value] : document.members) {
    out.key(name == "status" ? "execution_status" : name).raw(canonical_json(value));
  }
  out.end_object();
  Response problem = error;
  problem.body = out.take();
  problem.content_type = kProblemType;
  return problem;
}

int status_of(const Refusal& refusal) {
  if (refusal.code == Refusal::Code::store_corrupt) return 503;
  return refusal.code >= Refusal::Code::idempotency_conflict ? 409 : 400;
}

}  // namespace hapax::http
