// command_output_test.cpp -- output and exit codes of commands that print, fail or hang.
#include "base/command_output.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include <chrono>

namespace capstan {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLongLimit{20'000};

TEST(CommandOutput, ReturnsTextAndExitCode) {
  const auto output = command_output({"sh", "-c", "echo one; echo two >&2; exit 3"}, kLongLimit);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\n");
  EXPECT_EQ(output->exit_code, 3);
}

TEST(CommandOutput, CapturesStandardErrorIfRequested) {
  const auto output =
      command_output({"sh", "-c", "echo one; echo two >&2"}, kLongLimit, StderrMode::captured);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\ntwo\n");
}

TEST(CommandOutput, ProvidesEmptyStandardInput) {
  const auto output = command_output({"cat"}, kLongLimit);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "");
}

TEST(CommandOutput, ExitCodeOfATerminatedCommandIs128PlusTheSignal) {
  const auto output = command_output({"sh", "-c", "kill -TERM $$"}, kLongLimit);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 128 + 15);
}

TEST(CommandOutput, ExitCodeOfAKilledCommandIs128PlusTheSignal) {
  const auto output = command_output({"sh", "-c", "kill -9 $$"}, kLongLimit);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_code, 137);
}

TEST(CommandOutput, ChangesTheEnvironment) {
  ASSERT_EQ(setenv("CAPSTAN_TESTS_B", "there", 1), 0);
  const auto output = command_output({"sh", "-c", "echo $CAPSTAN_TESTS_A$CAPSTAN_TESTS_B"}, kLongLimit,
                                     StderrMode::discarded, {"CAPSTAN_TESTS_A=x", "CAPSTAN_TESTS_B"});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "x\n");
}

TEST(CommandOutput, TruncatesLongOutput) {
  const auto output = command_output({"head", "-c", "3000000", "/dev/zero"}, kLongLimit);
  ASSERT_TRUE(output);
  EXPECT_LT(output->text.size(), 1'100'000U);
}

TEST(CommandOutput, ReturnsNulloptForAMissingProgram) {
  EXPECT_FALSE(command_output({"no-such-program-here"}, kLongLimit));
}

TEST(CommandOutput, KillsTheProcessGroupAtTheTimeLimit) {
  EXPECT_FALSE(command_output({"sh", "-c", "sleep 600 & echo one; sleep 600"}, milliseconds(200)));
  EXPECT_FALSE(
      command_output({"sh", "-c", "exec >&- 2>&-; sleep 600"}, milliseconds(200), StderrMode::captured));
}

}  // namespace
}  // namespace capstan
