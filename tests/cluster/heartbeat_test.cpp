// heartbeat_test.cpp -- state of a child that its agent reads from shared memory.
#include "cluster/supervisor/heartbeat.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;

/// Runs it in a child process, since a process can share its heartbeat only once.
bool in_a_process(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Heartbeat, IsVisibleToTheProcessThatSharedIt) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const auto before = Heartbeat::Clock::now();
    const bool child_is_watched = in_a_process([] {
      Heartbeat::beat(milliseconds(1500));
      return Heartbeat::watched();
    });
    const auto last = Heartbeat::last();
    return child_is_watched && last && before <= last->at && last->at <= Heartbeat::Clock::now() &&
           last->most_silence == milliseconds(1500);
  }));
}

TEST(Heartbeat, IsNotExpectedBeforeTheFirstBeatOrWhileSuspended) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    if (Heartbeat::last()) return false;
    Heartbeat::beat(milliseconds(10));
    if (!Heartbeat::last()) return false;
    Heartbeat::rest();
    return !Heartbeat::last();
  }));
}

TEST(Heartbeat, WithoutATimeoutIsSuspended) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    Heartbeat::beat(milliseconds(10));
    Heartbeat::beat(milliseconds(0));
    return !Heartbeat::last();
  }));
}

TEST(Heartbeat, TellsTheAgentNotToRestart) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const bool told = in_a_process([] {
      Heartbeat::be_the_last();
      return true;
    });
    return told && Heartbeat::was_the_last();
  }));
}

TEST(Heartbeat, DoesNothingWithoutAnAgent) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::beat(milliseconds(10));
    Heartbeat::be_the_last();
    return !Heartbeat::watched() && !Heartbeat::last() && !Heartbeat::was_the_last();
  }));
}

}  // namespace
}  // namespace capstan::cluster
