// command_output_test.cpp -- output and exit codes of programs that print, fail, or do not end.
#include "base/command_output.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include <chrono>

namespace capstan {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20'000};

TEST(CommandOutput, ReturnsTextAndExitCode) {
  const auto output = command_output({"sh", "-c", "echo one; echo two >&2; exit 3"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\n");
  EXPECT_EQ(output->exit_code, 3);
}

TEST(CommandOutput, CapturesStandardErrorIfRequested) {
  const auto output = command_output({"sh", "-c", "echo one; echo two >&2"}, kLong, StderrMode::captured);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\ntwo\n");
}

TEST(CommandOutput, GivesEmptyInput) {
  const auto output = command_output({"cat"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "");
}

TEST(CommandOutput, ExitCodeOfATerminatedCommandIs128PlusTheSignal) {
  const auto output = command_output({"sh", "-c", "kill -TERM $$"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 128 + 15);
}

TEST(CommandOutput, ExitCodeOfAKilledCommandIs128PlusTheSignal) {
  const auto output = command_output({"sh", "-c", "kill -9 $$"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 137);
}

TEST(CommandOutput, ChangesTheEnvironment) {
  ASSERT_EQ(setenv("CAPSTAN_TEST_B", "there", 1), 0);
  const auto output = command_output({"sh", "-c", "echo $CAPSTAN_TEST_A$CAPSTAN_TEST_B"}, kLong,
                                     StderrMode::discarded, {"CAPSTAN_TEST_A=x", "CAPSTAN_TEST_B"});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "x\n");
}

TEST(CommandOutput, TruncatesLongOutput) {
  const auto output = command_output({"head", "-c", "3000000", "/dev/zero"}, kLong);
  ASSERT_TRUE(output);
  EXPECT_LT(output->text.size(), 1'100'000U);
}

TEST(CommandOutput, IsEmptyForAMissingProgram) {
  EXPECT_FALSE(command_output({"no-such-program-here"}, kLong));
}

TEST(CommandOutput, KillsTheProcessGroupAtTheTimeLimit) {
  EXPECT_FALSE(command_output({"sh", "-c", "sleep 600 & echo one; sleep 600"}, milliseconds(200)));
  EXPECT_FALSE(
      command_output({"sh", "-c", "exec >&- 2>&-; sleep 600"}, milliseconds(200), StderrMode::captured));
}

}  // namespace
}  // namespace capstan
