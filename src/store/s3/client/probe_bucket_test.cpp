#include "store/s3/client/probe_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/s3/client/lifecycle.h"
#include "store/s3/client/s3_xml.h"
#include "store/s3/conditions.h"
#include "store/s3/s3_store.h"
#include "support/fault_proxy.h"
#include "support/s3_server.h"

namespace hapax {
namespace {

using Fault = FaultProxy::Fault;
using Verb = S3Request::Verb;

// "fail If-Match", "ok clock"
std::vector<std::string> verdicts(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings) out.push_back(std::string(to_string(finding.verdict)) + " " + finding.about);
  return out;
}

std::string said(const std::vector<Finding>& findings, const std::string& about) {
  for (const Finding& finding : findings) {
    if (finding.about == about) return finding.says;
  }
  return "nothing";
}

TEST(ProbeBucket, FindsARealServerFit) {
  S3Wire wire(S3Server::shared().fresh_address());
  const auto findings = probe_bucket(wire);
  EXPECT_THAT(verdicts(findings), testing::ElementsAre("ok bucket", "ok permissions", "ok If-None-Match", "ok If-Match",
                                                       "ok concurrency", "ok bucket clock"));
}

TEST(ProbeBucket, LeavesNothingBehind) {
  S3Objects objects(S3Server::shared().fresh_address());
  probe_bucket(objects.wire());
  require_conditional_writes(objects);
  EXPECT_TRUE(objects.list("", "", 10).objects.empty());
}

TEST(ProbeBucket, RefusesAServerWithoutConditionalWrites) {
  FaultProxy proxy(S3Server::shared().port());
  proxy.follow([](const auto&) { return Fault::no_conditions; });
  S3Objects objects(S3Server::shared().fresh_address(proxy.port()));
  const auto findings = probe_bucket(objects.wire());
  EXPECT_THAT(verdicts(findings), testing::Contains("fail If-None-Match"));
  EXPECT_THAT(said(findings, "If-None-Match"), testing::HasSubstr("was overwritten"));
  try {
    require_conditional_writes(objects);
    FAIL() << "it was trusted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::misuse);
    EXPECT_THAT(failure.what(), testing::HasSubstr("does not honour If-None-Match"));
  }
}

TEST(ProbeBucket, RefusesAServerThatKnowsOnlyIfNoneMatch) {
  FaultProxy proxy(S3Server::shared().port());
  proxy.follow([](const FaultProxy::Request& request) {
    return request.target.ends_with("/replaced") || request.target.ends_with("/absent") ? Fault::no_conditions
                                                                                        : Fault::none;
  });
  S3Wire wire(S3Server::shared().fresh_address(proxy.port()));
  EXPECT_THAT(said(probe_bucket(wire), "If-Match"), testing::HasSubstr("a newer version was overwritten"));
}

TEST(ProbeBucket, RefusesAServerThatChecksConditionsOnlyWhenItIsCalm) {
  FaultProxy proxy(S3Server::shared().port());
  proxy.follow([](const FaultProxy::Request& request) {
    return request.target.find("/race") != std::string::npos ? Fault::no_conditions : Fault::none;
  });
  S3Wire wire(S3Server::shared().fresh_address(proxy.port()));
  EXPECT_THAT(said(probe_bucket(wire), "concurrency"), testing::HasSubstr("were told that they had won"));

  const S3Address address = S3Server::shared().fresh_address(proxy.port());
  const auto objects = std::make_shared<S3Objects>(address);
  try {
    open_s3_store(objects);
    FAIL() << "a store was created there";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Failure::Code::misuse);
    EXPECT_THAT(failure.what(), testing::HasSubstr("among writers at the same time"));
  }
  EXPECT_TRUE(objects->list("", "", 10).objects.empty());
}

TEST(ProbeBucket, NamesWhatIsNotThere) {
  S3Address address = S3Server::shared().fresh_address();
  address.bucket = "no-such-bucket";
  S3Wire wire(address);
  EXPECT_THAT(said(probe_bucket(wire), "bucket"), testing::HasSubstr("there is no such bucket"));
  address.endpoint = "http://127.0.0.1:1";
  S3Wire nowhere(address);
  EXPECT_THAT(said(probe_bucket(nowhere), "bucket"), testing::HasSubstr("does not answer"));
}

TEST(ProbeBucket, NamesEachMissingPermission) {
  FaultProxy proxy(S3Server::shared().port());
  proxy.follow([](const FaultProxy::Request& request) {
    const bool lists = request.target.find("list-type") != std::string::npos;
    return lists || request.method == "DELETE" ? Fault::deny : Fault::none;
  });
  S3Wire wire(S3Server::shared().fresh_address(proxy.port()));
  EXPECT_EQ(said(probe_bucket(wire), "permissions"),
            "missing: s3:ListBucket (403 AccessDenied), s3:DeleteObject (403 AccessDenied)");
}

class Lifecycle : public testing::Test {
 protected:
  // Rules belong to the bucket, which the tests share.
  void TearDown() override { wire_.ask({.verb = Verb::remove, .query = {{"lifecycle", ""}}}); }

  std::string rules() { return wire_.ask({.verb = Verb::get, .query = {{"lifecycle", ""}}}).body; }

  const S3Address address_ = S3Server::shared().fresh_address();
  S3Wire wire_{address_};
  const std::vector<std::string> folders_{"idempotency/", "tasks/"};
};

TEST_F(Lifecycle, ExpiresOldVersionsAndNothingThatIsCurrent) {
  EXPECT_EQ(set_lifecycle(wire_, folders_), std::nullopt);
  const auto set = children(rules(), "Rule");
  ASSERT_TRUE(set);
  ASSERT_EQ(set->size(), 2u);
  for (const std::string& rule : *set) {
    EXPECT_EQ(text_of(rule, "Status"), "Enabled");
    EXPECT_EQ(text_of(rule, "NoncurrentDays"), "1");
    EXPECT_EQ(text_of(rule, "Days"), std::nullopt) << rule;
    EXPECT_EQ(text_of(rule, "Date"), std::nullopt) << rule;
  }
}

TEST_F(Lifecycle, LeavesTheRulesOfOthers) {
  const std::vector<std::string> theirs{"theirs/"};
  S3Address other = address_;
  other.prefix = "other/";
  S3Wire other_wire(other);
  ASSERT_EQ(set_lifecycle(other_wire, theirs), std::nullopt);
  ASSERT_EQ(set_lifecycle(wire_, folders_), std::nullopt);
  EXPECT_EQ(children(rules(), "Rule")->size(), 3u);
  EXPECT_THAT(rules(), testing::HasSubstr("hapax: old versions of other/theirs/"));
}

TEST_F(Lifecycle, IsSetOnce) {
  ASSERT_EQ(set_lifecycle(wire_, folders_), std::nullopt);
  const std::int64_t puts = wire_.counts().put;
  EXPECT_EQ(set_lifecycle(wire_, folders_), std::nullopt);
  EXPECT_EQ(wire_.counts().put, puts);
}

TEST_F(Lifecycle, SaysWhyItCannotBeSet) {
  FaultProxy proxy(S3Server::shared().port());
  proxy.follow([](const auto&) { return Fault::deny; });
  S3Wire wire(S3Server::shared().fresh_address(proxy.port()));
  EXPECT_EQ(set_lifecycle(wire, folders_), "lifecycle rules cannot be read (403 AccessDenied)");
}

}  // namespace
}  // namespace hapax
