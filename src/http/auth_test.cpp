#include "http/auth.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "http/error.h"

namespace hapax::http {
namespace {

Request with(std::string_view authorization, std::string_view name_space = {}) {
  Request request;
  request.authorization = authorization;
  request.name_space_header = name_space;
  return request;
}

// The status of the refusal, 0 if admitted.
int refusal(const Auth& auth, const Request& request) {
  try {
    auth.admit(request);
    return 0;
  } catch (const RequestError& error) {
    return error.response().status;
  }
}

TEST(Auth, WithoutTokensEveryRequestIsAdmittedToItsNamespace) {
  const Auth auth({});
  EXPECT_EQ(auth.admit(with({})).name_space, "default");
  EXPECT_EQ(auth.admit(with({}, "shop")).name_space, "shop");
  EXPECT_EQ(refusal(auth, with({}, "")), 400);
  EXPECT_EQ(refusal(auth, with({}, "a\x01b")), 400);
  EXPECT_EQ(refusal(auth, with({}, "\xff")), 400);
}

TEST(Auth, NeedsAKnownBearerToken) {
  const Auth auth({{"secret", std::nullopt}});
  EXPECT_EQ(auth.admit(with("Bearer secret")).name_space, "default");
  EXPECT_EQ(auth.admit(with("bearer  secret", "shop")).name_space, "shop");
  EXPECT_EQ(refusal(auth, with({})), 401);
  EXPECT_EQ(refusal(auth, with("Bearer")), 401);
  EXPECT_EQ(refusal(auth, with("Bearer  ")), 401);
  EXPECT_EQ(refusal(auth, with("Bearer secre")), 401);
  EXPECT_EQ(refusal(auth, with("Bearer secrets")), 401);
  EXPECT_EQ(refusal(auth, with("Basic secret")), 401);
}

TEST(Auth, ARefusalNamesTheAuthenticationScheme) {
  const Auth auth({{"secret", std::nullopt}});
  try {
    auth.admit(with({}));
    FAIL();
  } catch (const RequestError& error) {
    const Response response = error.response();
    ASSERT_EQ(response.headers.size(), 1U);
    EXPECT_EQ(response.headers[0].first, "WWW-Authenticate");
    EXPECT_EQ(response.headers[0].second, "Bearer");
  }
}

TEST(Auth, ATokenOfANamespaceOpensNoOther) {
  const Auth auth({{"all", std::nullopt}, {"shop-only", "shop"}});
  EXPECT_EQ(auth.admit(with("Bearer shop-only")).name_space, "shop");
  EXPECT_EQ(auth.admit(with("Bearer shop-only", "shop")).name_space, "shop");
  EXPECT_EQ(refusal(auth, with("Bearer shop-only", "bank")), 403);
  EXPECT_EQ(auth.admit(with("Bearer all", "bank")).name_space, "bank");
  EXPECT_TRUE(auth.admit(with("Bearer shop-only")).bound);
  EXPECT_FALSE(auth.admit(with("Bearer all", "bank")).bound);
}

TEST(Auth, BadTokensAreRefusedAtStart) {
  const std::vector<AccessToken> empty{{"", std::nullopt}};
  EXPECT_THROW(Auth{empty}, std::invalid_argument);
  const std::vector<AccessToken> bad{{"x", ""}};
  EXPECT_THROW(Auth{bad}, std::invalid_argument);
}

}  // namespace
}  // namespace hapax::http
