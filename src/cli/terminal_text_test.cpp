#include "cli/terminal_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/paint.h"

namespace hapax {
namespace {

std::string filtered(const std::vector<std::string>& pieces) {
  std::ostringstream terminal;
  {
    TerminalFilter filter(terminal);
    for (const std::string& piece : pieces) terminal << piece << std::flush;
  }
  return terminal.str();
}

TEST(TerminalText, WhatATerminalObeysIsShownAsAnEscape) {
  EXPECT_EQ(escape_controls("a\x1b[2Jb"), "a\\u001b[2Jb");
  EXPECT_EQ(escape_controls("\xC2\x9B[31m"), "\\u009b[31m");
  EXPECT_EQ(escape_controls("pay\xE2\x80\xAE"
                            "eur"),
            "pay\\u202eeur");
  EXPECT_EQ(escape_controls("\xE2\x81\xA6x\xE2\x81\xA9\xD8\x9C"), "\\u2066x\\u2069\\u061c");
  EXPECT_EQ(escape_controls("line\rover\b\x7f"), "line\\u000dover\\u0008\\u007f");
}

TEST(TerminalText, WhatIsNoUtf8IsShownByteByByte) {
  EXPECT_EQ(escape_controls("\xFF\x9B"), "\\xff\\x9b");
  EXPECT_EQ(escape_controls("\xC0\x9B"), "\\xc0\\x9b");  // an overlong escape
  EXPECT_EQ(escape_controls("\xE0\x80\x9B"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(escape_controls("cut \xE2\x80"), "cut \\xe2\\x80");
}

TEST(TerminalText, OrdinaryTextStaysAsItIs) {
  const std::string text = "Ünïcode, 日本, 🙂\n\tnext line";
  EXPECT_EQ(escape_controls(text), text);
  EXPECT_EQ(filtered({text}), text);
}

TEST(TerminalText, ACellIsOneLineOfVisibleCharacters) {
  EXPECT_EQ(printable("a\nb\x1b[0m\xC2\x9Bx\xE2\x80\xAEy"), "a b [0m x y");
}

TEST(TerminalText, TheFilterLetsOurOwnColoursBy) {
  const std::string text = Paint(true)(Colour::red, "failed") + "\r\x1b[K";
  EXPECT_EQ(filtered({text}), text);
}

TEST(TerminalText, TheFilterEscapesEveryOtherSequence) {
  EXPECT_EQ(filtered({"\x1b[2J\x1b]0;title\x07\r\n"}), "\\u001b[2J\\u001b]0;title\\u0007\\u000d\n");
  EXPECT_EQ(filtered({"{\"a\":\"\xC2\x9B"
                      "31m\"}"}),
            "{\"a\":\"\\u009b31m\"}");
}

TEST(TerminalText, TheFilterPutsSplitCharactersTogether) {
  EXPECT_EQ(filtered({"\x1b", "[3", "1m", "\xC2", "\x9B", "\xE2\x80", "\xAE", "\xC3", "\xA9"}),
            "\x1b[31m\\u009b\\u202e\xC3\xA9");
  EXPECT_EQ(filtered({"\x1b", "[9m"}), "\\u001b[9m");
  EXPECT_EQ(filtered({"end\x1b"}), "end\\u001b");
}

}  // namespace
}  // namespace hapax
