// exit_codes_test.cpp -- the exit code of each Code, compared with docs/errors.md.
#include "launch/exit_codes.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace capstan::launch {
namespace {

TEST(ExitCodes, EachCodeHasTheDocumentedNumber) {
  const std::vector<std::pair<Code, int>> table{
      {Code::ok, 0},
      {Code::cancelled, 1},
      {Code::unknown, 1},
      {Code::invalid_argument, 2},
      {Code::deadline_exceeded, 4},
      {Code::not_found, 2},
      {Code::already_exists, 2},
      {Code::permission_denied, 3},
      {Code::resource_exhausted, 3},
      {Code::failed_precondition, 2},
      {Code::aborted, 1},
      {Code::out_of_range, 2},
      {Code::unimplemented, 2},
      {Code::internal, 3},
      {Code::unavailable, 4},
      {Code::data_loss, 5},
  };
  std::ifstream file(CAPSTAN_SOURCE_DIR "/docs/errors.md");
  std::ostringstream page;
  page << file.rdbuf();
  ASSERT_FALSE(page.str().empty());
  for (const auto& [code, number] : table) {
    EXPECT_EQ(static_cast<int>(exit_code(code)), number) << to_string(code);
    if (code == Code::ok) continue;
    const std::string row = "| `" + std::string(to_string(code)) + "` | " + std::to_string(number) + " |";
    EXPECT_NE(page.str().find(row), std::string::npos)
        << "docs/errors.md has no line that starts with " << row;
  }
}

TEST(ExitCodes, ClassifiesRankLocalCodes) {
  for (const Code code : {Code::invalid_argument, Code::not_found, Code::failed_precondition,
                          Code::unavailable, Code::deadline_exceeded, Code::permission_denied}) {
    EXPECT_FALSE(is_rank_local(code)) << to_string(code);
  }
  for (const Code code : {Code::internal, Code::resource_exhausted, Code::data_loss, Code::unknown}) {
    EXPECT_TRUE(is_rank_local(code)) << to_string(code);
  }
}

}  // namespace
}  // namespace capstan::launch
