#include "store/s3/client/lifecycle.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "store/s3/client/s3_xml.h"

namespace hapax {

namespace {

std::string rule_id(const S3Address& address, const std::string& folder) {
  return fmt::format("hapax: old versions of {}{}", address.prefix, folder);
}

std::string rule(const S3Address& address, const std::string& folder) {
  return fmt::format(
      "<Rule><ID>{}</ID><Filter><Prefix>{}</Prefix></Filter><Status>Enabled</Status>"
      "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"
      "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration></Rule>",
      escape_xml(rule_id(address, folder)), escape_xml(address.prefix + folder));
}

// Content-MD5, which this request must have.
std::string md5_base64(const std::string& body) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(body.data(), body.size(), digest, &length, EVP_md5(), nullptr);
  unsigned char text[2 * EVP_MAX_MD_SIZE];
  const int size = EVP_EncodeBlock(text, digest, static_cast<int>(length));
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
}

std::string refusal(const char* what, const S3Answer& answer) {
  return fmt::format("lifecycle rules cannot be {} ({} {})", what, answer.status,
                     answer.status == 0 ? answer.message : answer.code);
}

}  // namespace

std::optional<std::string> set_lifecycle(S3Wire& wire, std::span<const std::string> folders) {
  const S3Address& address = wire.address();
  S3Request request{.verb = S3Request::Verb::get, .query = {{"lifecycle", ""}}};
  const S3Answer before = wire.ask(request);
  if (!before.ok() && before.code != "NoSuchLifecycleConfiguration") return refusal("read", before);
  const auto present = before.ok() ? children(before.body, "Rule") : std::vector<std::string>();
  if (!present) return "the lifecycle rules that are there cannot be understood";

  std::string rules;
  for (const std::string& folder : folders) rules += rule(address, folder);
  std::size_t ours = 0;
  for (const std::string& other : *present) {
    const auto id = text_of(other, "ID");
    const bool is_ours = std::any_of(folders.begin(), folders.end(),
                                     [&](const std::string& folder) { return id == rule_id(address, folder); });
    if (is_ours) ++ours;
    if (!is_ours) rules += other;
  }
  if (ours == folders.size()) return {};

  request.verb = S3Request::Verb::put;
  request.body = fmt::format(
      "<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}</LifecycleConfiguration>", rules);
  request.headers = {"Content-MD5: " + md5_base64(request.body), "Content-Type: application/xml"};
  const S3Answer answer = wire.ask(request);
  return answer.ok() ? std::nullopt : std::optional(refusal("set", answer));
}

}  // namespace hapax
