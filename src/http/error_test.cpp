#include "http/error.h"

#include <gtest/gtest.h>

namespace hapax::http {
namespace {

TEST(ErrorResponse, SaysWhatHappenedIfClientsMayKnow) {
  for (const auto code : {Failure::Code::unavailable, Failure::Code::outcome_unknown, Failure::Code::corrupt}) {
    const Failure failure(code, "inside story", "The file q.db was deleted.");
    const std::string body = error_response(std::make_exception_ptr(failure)).body;
    EXPECT_NE(body.find(R"("message":"The file q.db was deleted. )"), std::string::npos) << body;
    EXPECT_EQ(body.find("inside story"), std::string::npos) << body;
  }
}

TEST(ErrorResponse, FailuresAre503AndSayWhetherToTryAgain) {
  const auto response = [](Failure::Code code) {
    return error_response(std::make_exception_ptr(Failure(code, "inside story")));
  };
  for (const auto code : {Failure::Code::unavailable, Failure::Code::outcome_unknown, Failure::Code::stopped,
                          Failure::Code::corrupt, Failure::Code::misuse}) {
    const Response answer = response(code);
    EXPECT_EQ(answer.status, 503);
    ASSERT_EQ(answer.headers.size(), 1U);
    EXPECT_EQ(answer.headers[0].first, "Retry-After");
  }
  EXPECT_NE(response(Failure::Code::outcome_unknown).body.find("OutcomeUnknown"), std::string::npos);
  EXPECT_NE(response(Failure::Code::stopped).body.find("ShuttingDown"), std::string::npos);
  EXPECT_NE(response(Failure::Code::corrupt).body.find("StoreCorrupt"), std::string::npos);
  EXPECT_NE(response(Failure::Code::misuse).body.find("hapax migrate"), std::string::npos);
  EXPECT_EQ(response(Failure::Code::misuse).body.find("inside story"), std::string::npos);
  const Response unexpected = error_response(std::make_exception_ptr(std::runtime_error("inside story")));
  EXPECT_EQ(unexpected.status, 500);
  EXPECT_EQ(unexpected.body.find("inside story"), std::string::npos);
}

}  // namespace
}  // namespace hapax::http
