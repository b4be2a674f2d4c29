#include "http/parse_request.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

#include "core/field.h"
#include "core/name.h"
#include "core/packed_json.h"
#include "engine/check_request.h"
#include "http/error.h"
#include "http/query.h"

namespace hapax::http {

namespace {

// A browser sends whatever a page tells it to, also to this machine, unless the media type requires a preflight. Other
// clients may send JSON as curl -d does, or without a type.
void check_media_type(const Request& request) {
  if (is_media_type(request.content_type, kJsonType)) return;
  if (request.has_origin) {
    throw RequestError(415, "UnsupportedMediaType",
                       "A request with an Origin header needs \"Content-Type: application/json\".");
  }
  if (request.body.empty() || request.content_type.empty()) return;
  if (is_media_type(request.content_type, "application/x-www-form-urlencoded")) return;
  throw RequestError(415, "UnsupportedMediaType", "The body must be JSON: send \"Content-Type: application/json\".");
}

}  // namespace

bool is_media_type(std::string_view content_type, std::string_view wanted) {
  std::string_view media = content_type.substr(0, content_type.find(';'));
  while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
  return std::equal(media.begin(), media.end(), wanted.begin(), wanted.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

namespace {

template <class Parse>
Json parse_or_refuse(const Request& request, Parse parse) {
  try {
    return parse(request.body);
  } catch (const InvalidJson& error) {
    const std::string_view before = std::string_view(request.body).substr(0, error.offset());
    const std::string_view last_line = before.substr(before.rfind('\n') + 1);
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    throw RequestError(400, "InvalidJson", fmt::format("The body is not valid JSON: {}.", error.what()))
        .with("line", 1 + std::count(before.begin(), before.end(), '\n'))
        .with("column", 1 + std::count_if(last_line.begin(), last_line.end(), starts_character));
  }
}

}  // namespace

Json parse_body(const Request& request) {
  // Checked and kept, nothing more.
  constexpr std::array<std::string_view, 4> kPayloads{"input", "result", "payload", "value"};
  constexpr std::size_t kLong = 64 * 1024;
  check_media_type(request);
  if (request.body.size() <= kLong) return parse_json_body(request);
  return parse_or_refuse(request, [&](std::string_view text) { return parse_packed_json(text, kPayloads); });
}

Json parse_json_body(const Request& request) { return parse_or_refuse(request, parse_json); }

void require_no_body(const Request& request) {
  check_media_type(request);
  if (request.body.empty()) return;
  const Json document = parse_body(request);
  FieldReader(document).done();
}

void apply_key_header(SubmitRequest& submission, const Request& request) {
  if (!request.idempotency_key) return;
  const std::string& key = *request.idempotency_key;
  if (auto wrong = check_idempotency_key(key)) throw invalid_idempotency_key(*wrong);
  if (submission.idempotency_key && *submission.idempotency_key != key) {
    throw InvalidField(submission.kind == Kind::workflow ? "/workflow_id" : "/idempotency_key",
                       "is another than the header Idempotency-Key; give one, or the same twice");
  }
  submission.idempotency_key = key;
}

std::string parse_request_key(const Request& request) {
  if (!request.idempotency_key) {
    throw RequestError(400, "IdempotencyKeyRequired",
                       "This operation needs the header Idempotency-Key, so that sending it twice does it once.")
        .with("header", "Idempotency-Key");
  }
  check_control_key(*request.idempotency_key);
  return *request.idempotency_key;
}

ListRequest parse_list(std::string_view text, std::string name_space, Kind kind) {
  Query query(text);
  ListRequest request;
  ListFilter& filter = request.filter;
  filter.kind = kind;
  filter.name_space = std::move(name_space);
  filter.queue = query.string("queue");
  filter.type = query.string("type");
  filter.idempotency_key = query.string(kind == Kind::workflow ? "workflow_id" : "idempotency_key");
  if (const auto status = query.string("status")) {
    filter.status = parse_status(*status);
    if (!filter.status) {
      throw invalid_parameter("status",
                              "must be one of pending, running, suspended, completed, failed, cancelled, timed_out");
    }
  }
  request.parent = query.string("parent");
  if (const auto cursor = query.string("cursor")) {
    filter.before = ExecutionId::parse(*cursor);
    if (!filter.before) throw invalid_parameter("cursor", "must be a \"next_cursor\" of an earlier answer");
  }
  filter.limit = static_cast<std::int32_t>(query.integer("limit", 1, kMaxPage).value_or(100));
  query.done();
  check(filter);
  return request;
}

}  // namespace hapax::http
