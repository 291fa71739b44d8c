// heartbeat_test.cpp -- state of a child that its agent reads from shared memory.
#include "cluster/supervisor/heartbeat.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/in_a_process.hpp"

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;

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
    Heartbeat::pause();
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

TEST(Heartbeat, ForbidsTheAgentToRestart) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const bool told = in_a_process([] {
      Heartbeat::forbid_restart();
      return true;
    });
    return told && Heartbeat::restart_forbidden();
  }));
}

TEST(Heartbeat, IsSharedWithAProgramThatInheritsTheFile) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::share();
    const int inherited = dup(Heartbeat::descriptor());
    const bool beats = in_a_process([&] {
      Heartbeat::adopt(FileDescriptor(inherited));
      Heartbeat::beat(milliseconds(700));
      return Heartbeat::watched() && Heartbeat::descriptor() == inherited;
    });
    const auto last = Heartbeat::last();
    return beats && last && last->most_silence == milliseconds(700);
  }));
}

TEST(Heartbeat, DoesNothingWithoutAnAgent) {
  EXPECT_TRUE(in_a_process([] {
    Heartbeat::beat(milliseconds(10));
    Heartbeat::forbid_restart();
    return !Heartbeat::watched() && Heartbeat::descriptor() < 0 && !Heartbeat::last() &&
           !Heartbeat::restart_forbidden();
  }));
}

}  // namespace
}  // namespace capstan::cluster
