#include "store/s3/client/s3_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax {
namespace {

constexpr std::string_view kListing =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix>a/</Prefix>"
    "<MaxKeys>2</MaxKeys><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>\n"
    "<Contents><Key>a/b%26c+%2B</Key><LastModified>2026-01-27T12:00:00.123Z</LastModified><ETag>&quot;e&quot;</ETag>"
    "<Owner><ID>x</ID><DisplayName/></Owner></Contents>"
    "<Contents><Key>a/d&amp;e</Key><LastModified>2026-01-27T12:00:01.000Z</LastModified></Contents>"
    "<CommonPrefixes/></ListBucketResult>";

TEST(S3Xml, ReadsAListing) {
  const auto listing = parse_listing(kListing);
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->more);
  ASSERT_EQ(listing->objects.size(), 2u);
  EXPECT_EQ(listing->objects[0].name, "a/b&c +");
  EXPECT_EQ(listing->objects[0].modified_at, *parse_time("2026-01-27T12:00:00.123Z"));
  EXPECT_EQ(listing->objects[1].name, "a/d&e");
}

TEST(S3Xml, TakesNoPartOfAListingForTheWhole) {
  for (std::size_t length = 0; length < kListing.size(); ++length) {
    EXPECT_FALSE(parse_listing(kListing.substr(0, length))) << length;
  }
}

TEST(S3Xml, TakesNothingElseForAListing) {
  EXPECT_FALSE(parse_listing("<html><body>It works!</body></html>"));
  EXPECT_FALSE(parse_listing("<Error><IsTruncated>false</IsTruncated></Error>"));
  EXPECT_FALSE(
      parse_listing("<ListBucketResult><Contents></Contents><IsTruncated>false</IsTruncated></ListBucketResult>"));
  EXPECT_FALSE(parse_listing("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult><a></a>"));
  EXPECT_FALSE(parse_listing("<ListBucketResult><IsTruncated>false</ListBucketResult></IsTruncated>"));
}

TEST(S3Xml, ReadsAnError) {
  const S3Error error = parse_error(
      "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>it&apos;s &#x4e;OT &lt;here&gt;</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "it's NOT <here>");
  EXPECT_EQ(parse_error("").code, "");
  EXPECT_EQ(parse_error("upstream connect error").code, "");
}

TEST(S3Xml, GivesElementsAsTheyStand) {
  const auto rules = children("<L xmlns=\"x\"><Rule><ID>a</ID></Rule> <Rule a=\"b\"/><Other/></L>", "Rule");
  ASSERT_TRUE(rules);
  EXPECT_THAT(*rules, testing::ElementsAre("<Rule><ID>a</ID></Rule>", "<Rule a=\"b\"/>"));
  EXPECT_FALSE(children("<L><Rule></L>", "Rule"));
}

}  // namespace
}  // namespace hapax
