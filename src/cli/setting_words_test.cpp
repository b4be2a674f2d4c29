#include "cli/setting_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/canonical_json.h"

namespace hapax {
namespace {

using Form = KnownSetting::Form;

const std::vector<KnownSetting> kKnown{{"retention", Form::text},     {"max_running", Form::number},
                                       {"paused", Form::boolean},     {"identity_fields", Form::list},
                                       {"retry.initial", Form::text}, {"retry.factor", Form::number}};

std::string change(const std::string& current, const std::vector<std::string>& words,
                   const std::vector<std::string>& from_file = {}) {
  return canonical_json(change_settings(current, from_file, words, kKnown));
}

TEST(SettingWords, SetWhatTheyNameAndKeepTheRest) {
  EXPECT_EQ(change(R"({"retention":"1d"})", {"max_running=5", "paused=true"}),
            R"({"max_running":5,"paused":true,"retention":"1d"})");
}

TEST(SettingWords, AnEmptyValueTakesTheSettingBack) {
  EXPECT_EQ(change(R"({"retention":"1d","max_running":5})", {"retention="}), R"({"max_running":5})");
}

TEST(SettingWords, ListsAndMembersOfMembers) {
  EXPECT_EQ(change("{}", {"identity_fields=/a,/b", "retry.initial=1s", "retry.factor=1.5"}),
            R"({"identity_fields":["/a","/b"],"retry":{"factor":1.5,"initial":"1s"}})");
}

TEST(SettingWords, WhatTheFileDecidesIsNotPut) {
  EXPECT_EQ(change(R"({"retention":"1d","max_running":5})", {"paused=false"}, {"max_running"}),
            R"({"paused":false,"retention":"1d"})");
}

TEST(SettingWords, AMisspeltNameSuggestsTheRightOne) {
  try {
    change("{}", {"retenton=1d"});
    FAIL();
  } catch (const CommandError& error) {
    EXPECT_STREQ(error.what(), "unknown setting \"retenton\"; did you mean \"retention\"?");
    EXPECT_EQ(error.exit_code(), kUsage);
  }
}

TEST(SettingWords, AWordWithoutAnEqualsSignIsRefused) { EXPECT_THROW(change("{}", {"retention"}), CommandError); }

TEST(SettingWords, ReadBackAsTheyAreWritten) {
  EXPECT_EQ(
      settings_in_words(R"({"identity_fields":["/a","/b"],"retry":{"initial":"1s"},"max_running":5,"paused":true})"),
      "identity_fields=/a,/b retry.initial=1s max_running=5 paused=true");
  EXPECT_EQ(settings_in_words("{}"), "");
}

}  // namespace
}  // namespace hapax
