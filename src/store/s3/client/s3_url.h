// Where a bucket is and who we are to it: an s3:// URL together with what AWS's own tools take from the environment.
//
//   s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT][&region=REGION][&style=path|virtual][&profile=NAME]
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hapax {

struct S3Credentials {
  std::string access_key, secret_key;
  std::string session_token;  // empty: these are not temporary
};

struct S3Address {
  std::string endpoint;  // http://HOST[:PORT] or https://HOST[:PORT]
  std::string bucket;
  std::string prefix;  // of every name in the bucket; empty, or ends with /
  std::string region;
  bool path_style = false;  // http://HOST/BUCKET/NAME, not http://BUCKET.HOST/NAME
  std::string ca_bundle;    // a file of certificates to trust; empty: the system's
  S3Credentials credentials;

  // Where the bucket is reached: http://HOST:PORT, the host in it, and the path of the bucket itself.
  std::string origin() const;
  std::string host() const;
  std::string path() const { return path_style ? "/" + bucket : ""; }

  std::string name() const { return "s3://" + bucket + "/" + prefix; }  // for messages: nothing secret in it
};

// A variable of the environment, absent if it is not set or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

// Credentials are taken from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else from the profile
// AWS_PROFILE (else `default`) of the files AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE (else ~/.aws/credentials
// and ~/.aws/config); a profile named in the URL goes before the variables. The region from the URL, AWS_REGION,
// AWS_DEFAULT_REGION, the profile; the endpoint from the URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile.
// Throws Failure::misuse with a sentence that says what is wrong and what to write, without anything secret.
S3Address parse_s3_url(const std::string& url, const EnvironmentLookup& environment = environment_variable);

}  // namespace hapax
