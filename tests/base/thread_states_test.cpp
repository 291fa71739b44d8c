// thread_states_test.cpp -- thread states of running, stopped and dead processes.
#include "base/thread_states.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace capstan {
namespace {

TEST(ThreadStatesTest, NamesTheStateOfEachThread) {
  EXPECT_NE(thread_states(::getpid()).find(" R"), std::string::npos) << thread_states(::getpid());
}

TEST(ThreadStatesTest, ReportsAStoppedProcess) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (true) ::pause();
  }
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_NE(thread_states(child).find(" T"), std::string::npos) << thread_states(child);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(thread_states(child), "");
}

}  // namespace
}  // namespace capstan
