// Reads requests into the engine's values. Everything here throws RequestError or InvalidField.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/json.h"
#include "engine/engine.h"
#include "http/message.h"

namespace hapax::http {

inline constexpr Duration kMaxWait = std::chrono::seconds(60);

// Whether a Content-Type is this media type (in lower case), ignoring its parameters.
bool is_media_type(std::string_view content_type, std::string_view wanted);

// The body as JSON, of any media type: 400 InvalidJson with line and column.
Json parse_json_body(const Request& request);

// The body as JSON: 415 for another media type (curl's form type counts as JSON, but not from a browser), then as
// parse_json_body(). In a long body, payloads are packed (core/packed_json.h).
Json parse_body(const Request& request);

// For routes whose path says everything: no body, or {}.
void require_no_body(const Request& request);

// A submission; `at` is its place in the document. A workflow's key is its "workflow_id", which may be absent: a header
// or a rule may provide it.
SubmitRequest parse_submit(Json document, const std::string& at = "", Kind kind = Kind::task);

// The header Idempotency-Key of a submission stands for the field of that name.
void apply_key_header(SubmitRequest& submission, const Request& request);

// The header Idempotency-Key of a control operation: 400 IdempotencyKeyRequired or InvalidIdempotencyKey.
std::string parse_request_key(const Request& request);

// {"tasks":[…]} with 1 to 1000 items, which are not parsed here.
std::vector<Json> parse_batch(Json document);

ClaimCall parse_claim(const Json& document, std::string name_space);

struct Heartbeat {
  std::vector<std::string> leases;  // as sent; anything that is not a lease token counts as lost
  Duration lease{60'000};
};
Heartbeat parse_heartbeat(const Json& document);
std::vector<std::string> parse_return(const Json& document);  // the leases to give back, as sent

struct FinishItem {
  std::string lease;  // as sent
  std::variant<Report::Completed, Report::Failed> outcome;
};
FinishItem parse_finish_item(const Json& document, const std::string& at);
std::vector<FinishItem> parse_finish(const Json& document);

// The filters, cursor and limit of a list.
struct ListRequest {
  ListFilter filter;
  std::optional<std::string> parent;  // as sent: the id of a run, or a workflow id
};
ListRequest parse_list(std::string_view query, std::string name_space, Kind kind);

}  // namespace hapax::http
