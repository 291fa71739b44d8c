// json_test.cpp -- the bound on the nesting depth of JSON, and errors that name the source.
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.hpp"

namespace capstan {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string parse_failure(const std::string& text, Code code, std::size_t max_depth = kMaxJsonDepth) {
  return error_of(code, [&] { (void)parse_json(text, "/run/some.json", code, max_depth); });
}

TEST(ParseJson, AcceptsTheMaximumDepth) {
  const std::string text = nested(kMaxJsonDepth);
  EXPECT_EQ(parse_json(text, "text", Code::data_loss).dump(), text);
  EXPECT_EQ(try_parse_json(text).dump(), text);
}

TEST(ParseJson, RejectsDeeperTextAndNamesSourceAndDepth) {
  for (const std::size_t depth : {kMaxJsonDepth + 1, std::size_t{200'000}}) {
    std::string objects;
    for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
    objects += "1" + std::string(depth, '}');
    for (const std::string& text : {nested(depth), objects, std::string(depth, '[')}) {
      const std::string error = parse_failure(text, Code::data_loss);
      EXPECT_NE(error.find("/run/some.json"), std::string::npos) << error;
      EXPECT_NE(error.find(std::to_string(depth)), std::string::npos) << error;
      EXPECT_TRUE(try_parse_json(text).is_discarded());
    }
  }
  EXPECT_NE(parse_failure("[[0]]", Code::invalid_argument, 1).find('2'), std::string::npos);
}

TEST(ParseJson, IgnoresBracketsInStringsAndSiblings) {
  const std::string text = "[\"" + std::string(1000, '[') + "\\\"[\\\\\",\"[\",[],{}]";
  EXPECT_NO_THROW((void)parse_json(text, "text", Code::data_loss, 2));
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[],";
  EXPECT_NO_THROW((void)parse_json(wide + "[]]", "text", Code::data_loss, 2));
}

TEST(ParseJson, RejectsInvalidJsonAndNamesSource) {
  for (const std::string text : {"", "{", "[1", "]", "}{", "\"", "\"\\", "\xff", "[1,]", "1e999"}) {
    const std::string error = parse_failure(text, Code::invalid_argument);
    EXPECT_NE(error.find("/run/some.json"), std::string::npos) << error;
    EXPECT_TRUE(try_parse_json(text).is_discarded()) << text;
  }
}

}  // namespace
}  // namespace capstan
