#include "store/s3/client/sigv4.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cctype>

#include "core/hash.h"
#include "core/hex.h"

namespace hapax {

namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) append_hex(text, byte);
  return text;
}

Digest hmac(std::string_view key, std::string_view text) {
  Digest digest;
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &length);
  return digest;
}

Digest hmac(const Digest& key, std::string_view text) {
  return hmac(std::string_view(reinterpret_cast<const char*>(key.data()), key.size()), text);
}

// 20130524T000000Z
std::string compact(Time now) {
  std::string text = format_time(std::chrono::floor<std::chrono::seconds>(now)).substr(0, 19);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text + "Z";
}

}  // namespace

std::string uri_encode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos || (c == '/' && keep_slashes)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : query) parts.push_back(uri_encode(name, false) + "=" + uri_encode(value, false));
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, "&"));
}

std::vector<std::string> sign_v4(const ToSign& request, const S3Credentials& credentials, const std::string& region,
                                 Time now) {
  const std::string time = compact(now), date = time.substr(0, 8);
  const std::string content = hex(sha256(request.body));
  std::string headers = fmt::format("host:{}\nx-amz-content-sha256:{}\nx-amz-date:{}\n", request.host, content, time);
  std::string names = "host;x-amz-content-sha256;x-amz-date";
  std::vector<std::string> out{"x-amz-content-sha256: " + content, "x-amz-date: " + time};
  if (!credentials.session_token.empty()) {
    headers += "x-amz-security-token:" + credentials.session_token + "\n";
    names += ";x-amz-security-token";
    out.push_back("x-amz-security-token: " + credentials.session_token);
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path.empty() ? "/" : request.path,
                  canonical_query(request.query), headers, names, content);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, region);
  const std::string to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sha256(canonical)));
  const Digest key = hmac(hmac(hmac(hmac("AWS4" + credentials.secret_key, date), region), "s3"), "aws4_request");
  out.push_back(fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                            credentials.access_key, scope, names, hex(hmac(key, to_sign))));
  return out;
}

}  // namespace hapax
