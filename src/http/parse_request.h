// The parts of a request that are HTTP's own: the body as JSON, headers, the query. wire/read_request.h reads what
// the body says. Everything here throws RequestError or InvalidField.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "engine/engine.h"
#include "http/message.h"

namespace hapax::http {

// Whether a Content-Type is this media type (in lower case), ignoring its parameters.
bool is_media_type(std::string_view content_type, std::string_view wanted);

// The body as JSON, of any media type: 400 InvalidJson with line and column.
Json parse_json_body(const Request& request);

// The body as JSON: 415 for another media type (curl's form type counts as JSON, but not from a browser), then as
// parse_json_body(). In a long body, payloads are packed (core/packed_json.h).
Json parse_body(const Request& request);

// For routes whose path says everything: no body, or {}.
void require_no_body(const Request& request);

// The header Idempotency-Key of a submission stands for the field of that name.
void apply_key_header(SubmitRequest& submission, const Request& request);

// The header Idempotency-Key of a control operation: 400 IdempotencyKeyRequired or InvalidIdempotencyKey.
std::string parse_request_key(const Request& request);

// The filters, cursor and limit of a list.
struct ListRequest {
  ListFilter filter;
  std::optional<std::string> parent;  // as sent: the id of a run, or a workflow id
};
ListRequest parse_list(std::string_view query, std::string name_space, Kind kind);

}  // namespace hapax::http
