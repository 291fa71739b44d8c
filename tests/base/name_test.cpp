// name_test.cpp -- validation of names, and escaping of untrusted text.
#include "base/name.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/printable.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

TEST(Name, MayContainAnyPrintableUtf8) {
  for (const std::string name : {"w", "a/b/c", "with space", "caf\xc3\xa9", "\xe2\x88\x82w", "...", "..a",
                                 "a.", "\"quoted\"", "back\\slash", "\xf0\x9f\x98\x80"}) {
    EXPECT_NO_THROW(check_name("variable", name)) << name;
  }
  EXPECT_NO_THROW(check_name("variable", std::string(kMaxNameBytes, 'x')));
}

TEST(Name, ErrorNamesTheKindAndTheEscapedName) {
  const std::string text = error_of(Code::invalid_argument, [] { check_name("counter", "a\nb\xff"); });
  EXPECT_NE(text.find("counter \"a\\nb\\xff\""), std::string::npos) << text;
  const std::string longer =
      error_of(Code::invalid_argument, [] { check_name("counter", std::string(kMaxNameBytes + 1, 'x')); });
  EXPECT_LT(longer.size(), 512U);
  EXPECT_NE(longer.find("513"), std::string::npos) << longer;
}

TEST(Printable, EscapesControlCharactersAndBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("plain caf\xc3\xa9 \"x\""), "\"plain caf\xc3\xa9 \"x\"\"");
  EXPECT_EQ(printable(std::string("\0\n\t\x1b\x7f", 5)), "\"\\x00\\n\\t\\x1b\\x7f\"");
  EXPECT_EQ(printable("\xff \xc3 \xed\xa0\x80 \xe2\x82"), "\"\\xff \\xc3 \\xed\\xa0\\x80 \\xe2\\x82\"");
}

TEST(Printable, TruncatesLongTextBetweenCharacters) {
  std::string text(59, 'x');
  text += "\xc3\xa9 and more";
  EXPECT_EQ(printable(text), "\"" + std::string(59, 'x') + "\xc3\xa9...\"");
  EXPECT_EQ(printable(std::string(60, 'x')), "\"" + std::string(60, 'x') + "\"");
}

}  // namespace
}  // namespace capstan
