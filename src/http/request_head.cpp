#include "http/request_head.h"

#include <boost/beast/core/string.hpp>

#include "http/error.h"

namespace hapax::http {

namespace beast = boost::beast;

namespace {

Method method_of(beast::http::verb verb) {
  switch (verb) {
    case beast::http::verb::get:
    case beast::http::verb::head: return Method::get;
    case beast::http::verb::post: return Method::post;
    case beast::http::verb::put: return Method::put;
    case beast::http::verb::patch: return Method::patch;
    case beast::http::verb::delete_: return Method::del;
    case beast::http::verb::options: return Method::options;
    default: return Method::other;
  }
}

void set_once(std::string_view& header, std::string_view name, std::string_view value) {
  if (header.data() != nullptr) throw invalid_header(name, "is given twice");
  header = value;
}

std::string_view as_view(beast::string_view text) { return {text.data(), text.size()}; }

// A proxy may read a header that continues on a second line (obs-fold) differently.
void refuse_folded_lines(std::string_view bytes) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n', end + 1)) {
    const std::string_view next = bytes.substr(end + 1, 1);
    if (next != " " && next != "\t") continue;
    throw RequestError(400, "MalformedHttp", "A header must not continue on a second line.").closing();
  }
}

// Finds the headers that matter in one pass. Throws RequestError.
void read_headers(Request& request, const beast::http::fields& fields, bool needs_host) {
  std::string_view host;
  // Any other coding would leave the end of the body open, and one request could be read as two.
  const auto coding = fields[beast::http::field::transfer_encoding];
  if (fields.count(beast::http::field::transfer_encoding) > 0 && !beast::iequals(coding, "chunked")) {
    throw RequestError(400, "MalformedHttp", "Only the Transfer-Encoding chunked is supported.").closing();
  }
  for (const auto& field : fields) {
    const std::string_view value = as_view(field.value());
    switch (field.name()) {
      case beast::http::field::content_type: set_once(request.content_type, "Content-Type", value); break;
      case beast::http::field::content_encoding: set_once(request.content_encoding, "Content-Encoding", value); break;
      case beast::http::field::host: set_once(host, "Host", value); break;
      case beast::http::field::origin: request.has_origin = true; break;
      case beast::http::field::authorization: set_once(request.authorization, "Authorization", value); break;
      case beast::http::field::unknown:
        if (beast::iequals(field.name_string(), "Idempotency-Key")) {
          set_once(request.key_header, "Idempotency-Key", value);
        } else if (beast::iequals(field.name_string(), "WebHook-Request-Origin")) {
          set_once(request.webhook_origin, "WebHook-Request-Origin", value);
        } else if (beast::iequals(field.name_string(), "Hapax-Namespace")) {
          set_once(request.name_space_header, "Hapax-Namespace", value);
        } else if (const auto name = as_view(field.name_string()); beast::iequals(name.substr(0, 3), "ce-")) {
          request.event_headers.emplace_back(name.substr(3), value);
        }
        break;
      default: break;
    }
  }
  if (needs_host && host.data() == nullptr) {
    throw RequestError(400, "MalformedHttp", "This is not an HTTP/1.1 request: it has no Host header.").closing();
  }
  if (request.host.data() == nullptr) request.host = host;
}

void read_target(Request& request, std::string_view target) {
  if (!target.starts_with('/')) {  // a proxy's form: http://host/path
    const auto authority = target.find("://");
    if (authority != std::string_view::npos) {
      target.remove_prefix(authority + 3);
      const auto path = std::min(target.find_first_of("/?#"), target.size());
      request.host = target.substr(0, path);
      target = path < target.size() ? target.substr(path) : "/";
    }
  }
  target = target.substr(0, target.find('#'));
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
}

// The values of a repeatable header as one list.
std::string list_of(const beast::http::fields& fields, beast::http::field name) {
  std::string list;
  const auto [first, last] = fields.equal_range(name);
  for (auto at = first; at != last; ++at) list.append(list.empty() ? "" : ",").append(as_view(at->value()));
  return list;
}

}  // namespace

Preferences read_preferences(const beast::http::fields& fields) {
  return {prefers_problem(list_of(fields, beast::http::field::accept)),
          choose_coding(list_of(fields, beast::http::field::accept_encoding))};
}

void read_head(Request& request, const RequestHeader& header, std::string_view bytes) {
  request.method = method_of(header.method());
  read_target(request, as_view(header.target()));
  refuse_folded_lines(bytes);
  read_headers(request, header, header.version() >= 11);
}

}  // namespace hapax::http
