#include "http/negotiation.h"

#include <gtest/gtest.h>

namespace hapax::http {
namespace {

TEST(Accept, AClientThatNamesProblemsGetsThem) {
  EXPECT_TRUE(prefers_problem("application/problem+json"));
  EXPECT_TRUE(prefers_problem("Application/Problem+JSON; charset=utf-8"));
  EXPECT_TRUE(prefers_problem("application/json, application/problem+json"));
  EXPECT_TRUE(prefers_problem("application/json;q=0.5, application/problem+json;q=0.9, */*;q=0.1"));
}

TEST(Accept, OtherClientsGetPlainErrors) {
  for (const char* accept : {"", "*/*", "application/*", "application/json", "text/html,*/*;q=0.8",
                             "application/problem+json;q=0", "application/json, application/problem+json;q=0.5",
                             "application/problem+json;q=x", "application/problem+xml", ",;=,"}) {
    EXPECT_FALSE(prefers_problem(accept)) << accept;
  }
}

TEST(AcceptEncoding, ThePreferredCodingWins) {
  EXPECT_EQ(choose_coding("gzip"), Coding::gzip);
  EXPECT_EQ(choose_coding("GZIP"), Coding::gzip);
  EXPECT_EQ(choose_coding("deflate"), Coding::deflate);
  EXPECT_EQ(choose_coding("gzip, deflate, br, zstd"), Coding::gzip);
  EXPECT_EQ(choose_coding("deflate;q=0.9, gzip;q=0.8"), Coding::deflate);
  EXPECT_EQ(choose_coding("*"), Coding::gzip);
  EXPECT_EQ(choose_coding("gzip;q=0, *"), Coding::deflate);
  EXPECT_EQ(choose_coding("gzip;q=0.5"), Coding::gzip);
}

TEST(AcceptEncoding, AnswersAreEncodedOnlyOnRequest) {
  for (const char* header : {"", "br", "identity", "gzip;q=0", "gzip;q=0.000", "*;q=0", "identity, gzip;q=0.5",
                             "gzip;q=2", "gzip;q=1.0001", "gzip;q=", "gzip;q=-1"}) {
    EXPECT_EQ(choose_coding(header), Coding::identity) << header;
  }
}

}  // namespace
}  // namespace hapax::http
