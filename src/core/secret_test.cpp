#include "core/secret.h"

#include <gmock/gmock.h>

namespace hapax {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Secret, PasswordOfAUrlIsHidden) {
  EXPECT_EQ(without_secrets("postgres://u:secret@h:5432/d"), "postgres://u:***@h:5432/d");
  EXPECT_EQ(without_secrets("postgresql://u:s%40cret@a,b/d?sslmode=require"),
            "postgresql://u:***@a,b/d?sslmode=require");
  EXPECT_EQ(without_secrets("redis://:secret@h:6379"), "redis://:***@h:6379");
  EXPECT_EQ(without_secrets("http://tok:secret@h:80/v1"), "http://***@h:80/v1");
  EXPECT_EQ(without_secrets("https://secret@h"), "https://***@h");
}

TEST(Secret, ParametersThatHoldOneAreHidden) {
  EXPECT_EQ(without_secrets("postgres://h/d?password=secret&sslmode=require&sslpassword=secret"),
            "postgres://h/d?password=***&sslmode=require&sslpassword=***");
  EXPECT_EQ(without_secrets("postgres://h/d?pass%77ord=secret"), "postgres://h/d?pass%77ord=***");
  EXPECT_EQ(without_secrets("postgres://h/d?PASSWORD=secret"), "postgres://h/d?PASSWORD=***");
  EXPECT_EQ(without_secrets("s3://b/p?secret_access_key=secret&session_token=secret&region=eu"),
            "s3://b/p?secret_access_key=***&session_token=***&region=eu");
  EXPECT_EQ(without_secrets("host=h password=secret user=u"), "host=h password=*** user=u");
  EXPECT_EQ(without_secrets("host=h password='a \\' secret' user=u"), "host=h password=*** user=u");
}

TEST(Secret, WhatHasNoneStaysAsItIs) {
  for (const char* url :
       {"sqlite:hapax.db", "sqlite:/var/lib/a=b.db", "memory:", "s3://bucket/prefix?region=eu-central-1",
        "postgres://u@h/d", "postgres:///d?host=/tmp&user=a@b", "http://127.0.0.1:7373", "", "?", "=", "://", "@"}) {
    EXPECT_EQ(without_secrets(url), url);
  }
}

// Mistakes in writing it must not show it.
TEST(Secret, PasswordWithUnescapedCharactersIsHiddenAsAWhole) {
  for (const char* url : {"postgres://u:secr@et@h/d", "postgres://u:sec/ret@h/d", "postgres://u:sec?ret@h/d",
                          "postgres://u:sec:ret@h/d", "postgres://u:sec#ret@h/d"}) {
    EXPECT_EQ(without_secrets(url), "postgres://u:***@h/d") << url;
  }
  EXPECT_THAT(without_secrets("postgres://h/d?password='secret"), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace hapax
