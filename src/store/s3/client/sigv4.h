// AWS Signature Version 4 for S3. Signed with a time that is given: the bucket's, so that a machine whose clock is
// wrong is let in.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "store/s3/client/s3_url.h"

namespace hapax {

// In the form of a request's path or query: everything but letters, digits and -._~ as %XX.
std::string uri_encode(std::string_view text, bool keep_slashes);

// A request, as far as the signature covers it. If-Match and If-None-Match are not covered: no server asks for it.
struct ToSign {
  std::string method;
  std::string host;
  std::string path;                                        // encoded
  std::vector<std::pair<std::string, std::string>> query;  // not encoded
  std::string_view body;
};

// The query as it must be sent: encoded, in the order in which it was signed.
std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query);

// The headers that make it a signed request.
std::vector<std::string> sign_v4(const ToSign& request, const S3Credentials& credentials, const std::string& region,
                                 Time now);

}  // namespace hapax
