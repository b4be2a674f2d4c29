#include "store/s3/client/s3_exchange.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "store/s3/client/s3_xml.h"
#include "store/s3/client/sigv4.h"

namespace hapax {

namespace {

// Servers close idle connections after some time; one that is younger is likely to be open still.
constexpr long kMaxIdleSeconds = 20;

const char* method_of(S3Request::Verb verb) {
  switch (verb) {
    case S3Request::Verb::put: return "PUT";
    case S3Request::Verb::remove: return "DELETE";
    case S3Request::Verb::get:
    case S3Request::Verb::list: break;
  }
  return "GET";
}

// The value of the header, if it is the one of that name (in lower case).
std::optional<std::string> value_of(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return {};
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = line[i] >= 'A' && line[i] <= 'Z' ? static_cast<char>(line[i] - 'A' + 'a') : line[i];
    if (c != name[i]) return {};
  }
  line.remove_prefix(name.size() + 1);
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(kBlank) - first + 1));
}

bool is_distrust(CURLcode result) {
  return result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE ||
         result == CURLE_SSL_ISSUER_ERROR;
}

// At least a millisecond: to curl, 0 means no limit.
Duration time_for(const S3Request& request, const S3WireOptions& options) {
  const auto now = std::chrono::steady_clock::now();
  if (request.deadline > now + options.timeout) return options.timeout;
  return std::max(Duration(1), std::chrono::ceil<Duration>(request.deadline - now));
}

}  // namespace

S3Exchange::S3Exchange() : easy_(curl_easy_init()) {
  if (!easy_) throw std::bad_alloc();
}

S3Exchange::~S3Exchange() { curl_easy_cleanup(easy_); }

void S3Exchange::prepare(const S3Address& address, const S3WireOptions& options, S3Request request, Time now) {
  request_ = std::move(request);
  answer_ = {};
  date_.reset();
  error_[0] = '\0';
  const std::string path = address.path() + "/" + uri_encode(request_.key, true);
  std::string url = address.origin() + path;
  if (!request_.query.empty()) url += "?" + canonical_query(request_.query);

  curl_slist* list = nullptr;
  const ToSign to_sign{method_of(request_.verb), address.host(), path, request_.query, request_.body};
  for (const std::string& header : sign_v4(to_sign, address.credentials, address.region, now)) {
    list = curl_slist_append(list, header.c_str());
  }
  for (const std::string& header : request_.headers) list = curl_slist_append(list, header.c_str());
  list = curl_slist_append(list, "Expect:");  // no round trip before a body
  headers_.reset(list);

  curl_easy_reset(easy_);
  curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);  // what was signed is what is sent
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(time_for(request_, options).count()));
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  if (!address.ca_bundle.empty()) curl_easy_setopt(easy_, CURLOPT_CAINFO, address.ca_bundle.c_str());
  set_method();
  sent_at_ = Monotonic::now();
}

// On a kept connection that breaks before the answer comes, curl sends the request again by itself. A PUT that goes out
// twice without our knowing would be refused for its own first time; so its body is read from a function that cannot
// start over.
void S3Exchange::set_method() {
  if (request_.verb == S3Request::Verb::remove) curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, "DELETE");
  if (request_.verb != S3Request::Verb::put) return;
  unsent_ = request_.body;
  curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, read_body);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
}

std::size_t S3Exchange::read_body(char* data, std::size_t size, std::size_t count, void* exchange) {
  std::string_view& unsent = static_cast<S3Exchange*>(exchange)->unsent_;
  const std::size_t length = std::min(size * count, unsent.size());
  std::memcpy(data, unsent.data(), length);
  unsent.remove_prefix(length);
  return length;
}

std::size_t S3Exchange::append_body(char* data, std::size_t size, std::size_t count, void* exchange) {
  static_cast<S3Exchange*>(exchange)->answer_.body.append(data, size * count);
  return size * count;
}

std::size_t S3Exchange::take_header(char* data, std::size_t size, std::size_t count, void* exchange) {
  auto& self = *static_cast<S3Exchange*>(exchange);
  const std::string_view line(data, size * count);
  if (auto etag = value_of(line, "etag")) {
    std::erase(*etag, '"');
    self.answer_.etag = std::move(*etag);
  } else if (auto region = value_of(line, "x-amz-bucket-region")) {
    self.answer_.region = std::move(*region);
  } else if (auto date = value_of(line, "date")) {
    const time_t seconds = curl_getdate(date->c_str(), nullptr);
    if (seconds > 0) self.date_ = Time(std::chrono::seconds(seconds));
  }
  return size * count;
}

S3Answer S3Exchange::take(CURLcode result) {
  if (result != CURLE_OK) {
    long sent_bytes = 0;
    curl_easy_getinfo(easy_, CURLINFO_REQUEST_SIZE, &sent_bytes);
    S3Answer none;
    none.sent = sent_bytes > 0 || result == CURLE_SEND_FAIL_REWIND;
    none.untrusted = is_distrust(result);
    none.message = error_[0] ? error_ : curl_easy_strerror(result);
    return none;
  }
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  answer_.status = static_cast<int>(status);
  if (!answer_.ok()) {
    S3Error error = parse_error(answer_.body);
    answer_.code = std::move(error.code);
    answer_.message = std::move(error.message);
  }
  return std::move(answer_);
}

}  // namespace hapax
