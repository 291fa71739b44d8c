// command_output_test.cpp -- what comes back from programs that print, fail, or do not end.
#include "base/command_output.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include <chrono>

namespace capstan {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20'000};

TEST(CommandOutput, HasTextAndExitCode) {
  const auto output = command_output({"sh", "-c", "echo one; echo two >&2; exit 3"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\n");
  EXPECT_EQ(output->exit_code, 3);
}

TEST(CommandOutput, KeepsStandardErrorWhereAsked) {
  const auto output = command_output({"sh", "-c", "echo one; echo two >&2"}, kLong, Errors::kept);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\ntwo\n");
}

TEST(CommandOutput, HasNoInput) {
  const auto output = command_output({"cat"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "");
}

TEST(CommandOutput, OfAProgramThatIsKilledIs128AndTheSignal) {
  const auto output = command_output({"sh", "-c", "kill -TERM $$"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 128 + 15);
}

TEST(CommandOutput, OfAKilledOneHasItsSignal) {
  const auto output = command_output({"sh", "-c", "kill -9 $$"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 137);
}

TEST(CommandOutput, MayHaveAnotherEnvironment) {
  ASSERT_EQ(setenv("CAPSTAN_TEST_B", "there", 1), 0);
  const auto output = command_output({"sh", "-c", "echo $CAPSTAN_TEST_A$CAPSTAN_TEST_B"}, kLong,
                                     Errors::dropped, {"CAPSTAN_TEST_A=x", "CAPSTAN_TEST_B"});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "x\n");
}

TEST(CommandOutput, HasAnEnd) {
  const auto output = command_output({"head", "-c", "3000000", "/dev/zero"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_LT(output->text.size(), 1'100'000U);
}

TEST(CommandOutput, OfNoProgramIsNone) { EXPECT_FALSE(command_output({"no-such-program-here"}, kLong)); }

TEST(CommandOutput, AProgramThatDoesNotEndIsKilledWithItsChildren) {
  EXPECT_FALSE(command_output({"sh", "-c", "sleep 600 & echo one; sleep 600"}, milliseconds(200)));
  EXPECT_FALSE(command_output({"sh", "-c", "exec >&- 2>&-; sleep 600"}, milliseconds(200), Errors::kept));
}

}  // namespace
}  // namespace capstan
