#include "store/s3/client/s3_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "core/failure.h"
#include "support/temp_dir.h"

namespace hapax {
namespace {

using Variables = std::map<std::string, std::string>;

EnvironmentLookup from(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

const Variables kKeys{{"AWS_ACCESS_KEY_ID", "access"}, {"AWS_SECRET_ACCESS_KEY", "secret"}};

Variables with(Variables more) {
  more.insert(kKeys.begin(), kKeys.end());
  return more;
}

std::string complaint(const std::string& url, const Variables& variables = kKeys) {
  try {
    parse_s3_url(url, from(variables));
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::misuse);
    return failure.what();
  }
  return "none";
}

TEST(S3Url, NamesABucketOnAws) {
  const S3Address address = parse_s3_url("s3://jobs/prod/eu?region=eu-central-1", from(kKeys));
  EXPECT_EQ(address.bucket, "jobs");
  EXPECT_EQ(address.prefix, "prod/eu/");
  EXPECT_EQ(address.endpoint, "https://s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(address.host(), "jobs.s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(address.origin(), "https://jobs.s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(address.path(), "");
  EXPECT_EQ(address.credentials.access_key, "access");
  EXPECT_EQ(address.credentials.secret_key, "secret");
}

TEST(S3Url, NamesABucketOnAnotherServerByPath) {
  const S3Address address = parse_s3_url("s3://jobs?endpoint=http://127.0.0.1:9000/", from(kKeys));
  EXPECT_EQ(address.prefix, "");
  EXPECT_EQ(address.region, "us-east-1");
  EXPECT_EQ(address.origin() + address.path(), "http://127.0.0.1:9000/jobs");
}

TEST(S3Url, LeavesOutTheUsualPort) {
  EXPECT_EQ(parse_s3_url("s3://jobs?endpoint=https://s3.example.com:443", from(kKeys)).host(), "s3.example.com");
  EXPECT_EQ(parse_s3_url("s3://jobs?endpoint=http://s3.example.com:80/", from(kKeys)).host(), "s3.example.com");
  EXPECT_EQ(parse_s3_url("s3://jobs?endpoint=http://s3.example.com:443", from(kKeys)).host(), "s3.example.com:443");
}

TEST(S3Url, TakesTheStyleItIsTold) {
  EXPECT_EQ(parse_s3_url("s3://jobs?endpoint=https://s3.example.com&style=virtual", from(kKeys)).host(),
            "jobs.s3.example.com");
  EXPECT_TRUE(parse_s3_url("s3://jobs?region=us-east-1&style=path", from(kKeys)).path_style);
  EXPECT_TRUE(parse_s3_url("s3://my.jobs?region=us-east-1", from(kKeys)).path_style)
      << "no certificate matches the dot";
}

TEST(S3Url, TakesRegionEndpointTokenAndCertificatesFromTheEnvironment) {
  const S3Address address = parse_s3_url("s3://jobs", from(with({{"AWS_DEFAULT_REGION", "eu-west-1"},
                                                                 {"AWS_SESSION_TOKEN", "token"},
                                                                 {"AWS_ENDPOINT_URL", "http://everything"},
                                                                 {"AWS_ENDPOINT_URL_S3", "https://only.s3"},
                                                                 {"AWS_CA_BUNDLE", "/etc/own.pem"}})));
  EXPECT_EQ(address.region, "eu-west-1");
  EXPECT_EQ(address.endpoint, "https://only.s3");
  EXPECT_EQ(address.credentials.session_token, "token");
  EXPECT_EQ(address.ca_bundle, "/etc/own.pem");
}

class Profiles : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_.file("credentials")) << "# mine\n[default]\naws_access_key_id=d\naws_secret_access_key = ds\n\n"
                                               "[ work ]\naws_access_key_id = w\naws_secret_access_key = ws\n"
                                               "aws_session_token = wt\n";
    std::ofstream(dir_.file("config")) << "[default]\nregion = eu-north-1\n[profile work]\nregion = us-west-2\n";
    files_ = {{"AWS_SHARED_CREDENTIALS_FILE", dir_.file("credentials")}, {"AWS_CONFIG_FILE", dir_.file("config")}};
  }

  TempDir dir_;
  Variables files_;
};

TEST_F(Profiles, AreReadWhereTheEnvironmentHasNoKeys) {
  const S3Address address = parse_s3_url("s3://jobs", from(files_));
  EXPECT_EQ(address.credentials.access_key, "d");
  EXPECT_EQ(address.credentials.secret_key, "ds");
  EXPECT_EQ(address.region, "eu-north-1");
}

TEST_F(Profiles, AreChosenByVariableOrUrl) {
  files_["AWS_PROFILE"] = "work";
  const S3Address address = parse_s3_url("s3://jobs", from(files_));
  EXPECT_EQ(address.credentials.session_token, "wt");
  EXPECT_EQ(address.region, "us-west-2");
  files_["AWS_PROFILE"] = "default";
  files_.insert(kKeys.begin(), kKeys.end());
  EXPECT_EQ(parse_s3_url("s3://jobs", from(files_)).credentials.access_key, "access")
      << "variables go before AWS_PROFILE";
  EXPECT_EQ(parse_s3_url("s3://jobs?profile=work", from(files_)).credentials.access_key, "w");
}

TEST_F(Profiles, ThatAreMissingAreNamed) {
  files_["AWS_PROFILE"] = "play";
  EXPECT_THAT(complaint("s3://jobs", files_), testing::HasSubstr("profile \"play\""));
}

TEST(S3Url, SaysWhatIsWrong) {
  using testing::HasSubstr;
  EXPECT_THAT(complaint("s3:///prefix"), HasSubstr("the bucket is missing"));
  EXPECT_THAT(complaint("s3:jobs"), HasSubstr("does not begin with s3://"));
  EXPECT_THAT(complaint("s3://jo bs"), HasSubstr("cannot be the name of a bucket"));
  EXPECT_THAT(complaint("s3://jobs"), HasSubstr("the region is missing"));
  EXPECT_THAT(complaint("s3://jobs?region="), HasSubstr("region is empty"));
  EXPECT_THAT(complaint("s3://jobs?regoin=x"), HasSubstr("no option \"regoin\""));
  EXPECT_THAT(complaint("s3://jobs?region=a&region=b"), HasSubstr("twice"));
  EXPECT_THAT(complaint("s3://jobs?region=a&style=both"), HasSubstr("path or virtual"));
  EXPECT_THAT(complaint("s3://jobs?endpoint=localhost:9000"), HasSubstr("http://HOST:PORT"));
  EXPECT_THAT(complaint("s3://jobs?endpoint=http://h/bucket"), HasSubstr("http://HOST:PORT"));
  EXPECT_THAT(complaint("s3://jobs?region=a", {}), HasSubstr("there are no credentials"));
  EXPECT_THAT(complaint("s3://jobs?region=a", {{"AWS_ACCESS_KEY_ID", "a"}}), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
  EXPECT_THAT(complaint("s3://jobs/a%2?region=a"), HasSubstr("%25"));
}

TEST(S3Url, HasNothingSecretInItsName) {
  const S3Address address = parse_s3_url("s3://jobs/a?region=eu-west-1", from(kKeys));
  EXPECT_EQ(address.name(), "s3://jobs/a/");
}

}  // namespace
}  // namespace hapax
