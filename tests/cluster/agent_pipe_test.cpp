// agent_pipe_test.cpp -- values that are sent through a pipe arrive complete, or the reader gets an error.
#include "cluster/supervisor/agent_pipe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>
#include <vector>

#include "support/expect_error.hpp"

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;
using PipeClock = std::chrono::steady_clock;

PipeClock::time_point in_time() { return PipeClock::now() + std::chrono::seconds(20); }

TEST(AgentPipe, DeliversValuesInOrder) {
  const Pipe pipe = open_pipe();
  send_value(pipe.write_end.get(), std::string("first"));
  send_value(pipe.write_end.get(), std::vector<int>{1, 2, 3});
  EXPECT_EQ(receive_value<std::string>(pipe.read_end.get(), in_time(), "the child"), "first");
  EXPECT_EQ(receive_value<std::vector<int>>(pipe.read_end.get(), in_time(), "the child"),
            (std::vector<int>{1, 2, 3}));
}

TEST(AgentPipe, DeliversAValueLargerThanThePipe) {
  const Pipe pipe = open_pipe();
  std::vector<int> large(1 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<int>(i);
  const std::jthread sender([&] { send_value(pipe.write_end.get(), large); });
  EXPECT_EQ(receive_value<std::vector<int>>(pipe.read_end.get(), in_time(), "the child"), large);
}

TEST(AgentPipe, ThrowsUnavailableIfTheWriterEndsDuringAValue) {
  Pipe pipe = open_pipe();
  const std::uint64_t size = 100;
  write_all(pipe.write_end.get(), &size, sizeof size);
  write_all(pipe.write_end.get(), "half", 4);
  pipe.write_end.reset();
  const std::string text = error_of(Code::unavailable, [&] {
    (void)receive_value<std::string>(pipe.read_end.get(), in_time(), "this rank's program");
  });
  EXPECT_NE(text.find("this rank's program"), std::string::npos) << text;
}

TEST(AgentPipe, ThrowsDeadlineExceededWhenNothingArrives) {
  const Pipe pipe = open_pipe();
  const std::string text = error_of(Code::deadline_exceeded, [&] {
    (void)receive_value<std::string>(pipe.read_end.get(), PipeClock::now() + milliseconds(20),
                                     "the other ranks");
  });
  EXPECT_NE(text.find("the other ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("--start-timeout"), std::string::npos) << text;
}

TEST(AgentPipe, ThrowsForAPipeWithoutReader) {
  Pipe pipe = open_pipe();
  pipe.read_end.reset();
  void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
  EXPECT_THROW(send_value(pipe.write_end.get(), 1), Error);
  signal(SIGPIPE, before);
}

TEST(AgentPipe, IsClosedOnExec) {
  const Pipe pipe = open_pipe();
  for (const int end : {pipe.read_end.get(), pipe.write_end.get()}) {
    EXPECT_NE(fcntl(end, F_GETFD) & FD_CLOEXEC, 0);
  }
}

}  // namespace
}  // namespace capstan::cluster
