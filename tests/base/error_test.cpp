// error_test.cpp -- error codes with their names and numbers, and the text of a failed C call.
#include "capstan/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/assert.hpp"
#include "base/log.hpp"

namespace capstan {
namespace {

TEST(Error, CodesHaveTheNumbersOfGrpc) {
  // Messages between ranks and the Python package depend on these numbers.
  EXPECT_EQ(static_cast<int>(Code::ok), 0);
  EXPECT_EQ(static_cast<int>(Code::cancelled), 1);
  EXPECT_EQ(static_cast<int>(Code::invalid_argument), 3);
  EXPECT_EQ(static_cast<int>(Code::deadline_exceeded), 4);
  EXPECT_EQ(static_cast<int>(Code::failed_precondition), 9);
  EXPECT_EQ(static_cast<int>(Code::unavailable), 14);
  EXPECT_EQ(static_cast<int>(Code::data_loss), 15);
}

TEST(Error, CodesHaveUniqueNames) {
  std::set<std::string_view> names;
  for (int code = 0; code <= 15; ++code) names.insert(to_string(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), 16U);
  EXPECT_EQ(to_string(Code::unavailable), "unavailable");
  EXPECT_EQ(to_string(Code::unimplemented), "unimplemented");
  EXPECT_EQ(to_string(static_cast<Code>(200)), "unknown");
}

TEST(Error, StoresCodeTextAndLine) {
  const int line = __LINE__ + 1;
  const Error error(Code::not_found, "no such thing");
  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_STREQ(error.what(), "no such thing");
  EXPECT_EQ(error.where().line, line);
  EXPECT_THAT(error.where().file, testing::EndsWith("error_test.cpp"));
}

TEST(Error, CallFailedNamesCallReasonAndLine) {
  const Error error = call_failed("ucp_init", "No such device", {"/a/b/context.cpp", 41});
  EXPECT_STREQ(error.what(), "ucp_init: No such device (context.cpp:41)");
  EXPECT_EQ(error.code(), Code::internal);
  EXPECT_EQ(call_failed("open", "denied", {"x.cpp", 1}, Code::permission_denied).code(),
            Code::permission_denied);
}

TEST(AssertDeathTest, FailurePrintsTheExpressionAndAborts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(CAPSTAN_ASSERT(1 + 1 == 3), "capstan: assertion failed: 1 \\+ 1 == 3 \\(.*error_test.cpp:");
  CAPSTAN_ASSERT(1 + 1 == 2);
}

TEST(Log, RejectsUnknownLevels) {
  EXPECT_NO_THROW(log::set_level("off"));
  EXPECT_NO_THROW(log::set_level("info"));
  try {
    log::set_level("loud");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("\"loud\""));
  }
}

}  // namespace
}  // namespace capstan
