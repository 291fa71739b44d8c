// heartbeat_test.cpp -- what a child tells its agent through memory that they share.
#include "cluster/supervisor/heartbeat.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;

/// Runs it in a process of its own, since a process has one heartbeat, for good.
bool in_a_process(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Heartbeat, IsSeenByTheProcessThatSharedIt) {
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

TEST(Heartbeat, IsNotExpectedBeforeTheFirstBeatNorAtRest) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    if (Heartbeat::last()) return false;
    Heartbeat::beat(milliseconds(10));
    if (!Heartbeat::last()) return false;
    Heartbeat::rest();
    return !Heartbeat::last();
  }));
}

TEST(Heartbeat, OfNoSilenceAtAllRests) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    Heartbeat::beat(milliseconds(10));
    Heartbeat::beat(milliseconds(0));
    return !Heartbeat::last();
  }));
}

TEST(Heartbeat, TellsTheAgentThatNoProcessIsToFollow) {
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
