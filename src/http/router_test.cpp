#include "http/router.h"

#include <gtest/gtest.h>

namespace hapax::http {
namespace {

Router sample() {
  Router router;
  const Handler nothing = [](Request&, const Responder&) {};
  router.add(Method::post, "/v1/tasks", nothing);
  router.add(Method::get, "/v1/tasks", nothing);
  router.add(Method::post, "/v1/tasks/batch", nothing);
  router.add(Method::get, "/v1/tasks/{id}", nothing);
  router.add(Method::post, "/v1/tasks/{id}/cancel", nothing);
  router.add(Method::get, "/", nothing);
  return router;
}

TEST(Router, FindsByMethodAndPath) {
  const Router router = sample();
  EXPECT_EQ(router.find(Method::post, "/v1/tasks").route->pattern, "/v1/tasks");
  EXPECT_EQ(router.find(Method::post, "/v1/tasks/batch").route->pattern, "/v1/tasks/batch");
  EXPECT_EQ(router.find(Method::get, "/").route->pattern, "/");
}

TEST(Router, VariablePartsStayEncoded) {
  const Router router = sample();
  const auto match = router.find(Method::post, "/v1/tasks/a%2Fb/cancel");
  ASSERT_NE(match.route, nullptr);
  ASSERT_EQ(match.params.size(), 1U);
  EXPECT_EQ(match.params[0], "a%2Fb");
}

TEST(Router, UnknownPathsMatchNothing) {
  const Router router = sample();
  for (const char* path :
       {"/v1", "/v1/nothing", "/v1/tasks/", "/v1//tasks", "", "/v1/tasks/a/b/c", "/a/b/c/d/e/f/g/h/i/j"}) {
    const auto match = router.find(Method::get, path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allow, "") << path;
  }
}

TEST(Router, AWrongMethodNamesTheRightOnes) {
  const Router router = sample();
  EXPECT_EQ(router.find(Method::del, "/v1/tasks").allow, "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(router.find(Method::other, "/v1/tasks/x/cancel").allow, "POST, OPTIONS");
  EXPECT_EQ(router.find(Method::options, "/v1/tasks/x/cancel").allow, "POST, OPTIONS");
  EXPECT_EQ(router.find(Method::options, "*").allow, "GET, HEAD, POST, OPTIONS");
}

TEST(Router, TheFirstMatchingPatternWins) {
  const Router router = sample();
  const auto match = router.find(Method::get, "/v1/tasks/batch");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allow, "POST, OPTIONS");
}

TEST(PercentDecoding, DecodesAndRefuses) {
  EXPECT_EQ(percent_decode("a%20b%C3%BC"), "a b\u00fc");
  EXPECT_EQ(percent_decode("a+b"), "a+b");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
  EXPECT_EQ(percent_decode("%"), std::nullopt);
  EXPECT_EQ(percent_decode("%4"), std::nullopt);
  EXPECT_EQ(percent_decode("%zz"), std::nullopt);
  EXPECT_EQ(percent_decode("%ff"), std::nullopt);
  EXPECT_EQ(percent_decode("%41"), "A");
}

}  // namespace
}  // namespace hapax::http
