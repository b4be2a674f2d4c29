#include "store/s3/client/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;

// The examples of AWS's own documentation of Signature Version 4 for S3.
const S3Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const Time kExampleTime = std::chrono::sys_days(std::chrono::year(2013) / 5 / 24);

TEST(Sigv4, SignsAwsExampleOfABucketsLifecycle) {
  const ToSign request{"GET", "examplebucket.s3.amazonaws.com", "/", {{"lifecycle", ""}}, ""};
  EXPECT_THAT(sign_v4(request, kExample, "us-east-1", kExampleTime),
              Contains(EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")));
}

TEST(Sigv4, SignsAwsExampleOfAListing) {
  const ToSign request{"GET", "examplebucket.s3.amazonaws.com", "/", {{"prefix", "J"}, {"max-keys", "2"}}, ""};
  EXPECT_THAT(sign_v4(request, kExample, "us-east-1", kExampleTime),
              Contains(EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")));
}

TEST(Sigv4, CoversTheSessionToken) {
  S3Credentials temporary = kExample;
  temporary.session_token = "token";
  const auto headers = sign_v4({"GET", "host", "/", {}, ""}, temporary, "us-east-1", kExampleTime);
  EXPECT_THAT(headers, Contains("x-amz-security-token: token"));
  EXPECT_THAT(headers, Contains(HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,")));
}

TEST(Sigv4, EncodesEverythingButLettersDigitsAndFourMarks) {
  EXPECT_EQ(uri_encode("aZ09-._~", false), "aZ09-._~");
  EXPECT_EQ(uri_encode("a b+c=d%/\xC3\xA4*'()!", false), "a%20b%2Bc%3Dd%25%2F%C3%A4%2A%27%28%29%21");
  EXPECT_EQ(uri_encode("a/b", true), "a/b");
}

TEST(Sigv4, OrdersTheQueryByName) {
  EXPECT_EQ(canonical_query({{"start-after", "x"}, {"list-type", "2"}, {"prefix", "a/b"}}),
            "list-type=2&prefix=a%2Fb&start-after=x");
}

}  // namespace
}  // namespace hapax
