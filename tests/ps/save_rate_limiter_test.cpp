// save_rate_limiter_test.cpp -- the limiter delays writes to keep its rate, and can be stopped.
#include "ps/durability/save_rate_limiter.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "capstan/error.hpp"
#include "support/asleep.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

using std::chrono::milliseconds;

TEST(SaveRateLimiter, WritesNoFasterThanItsLimit) {
  const auto begin = std::chrono::steady_clock::now();
  SaveRateLimiter limiter(1'000'000);
  const std::stop_source stop;
  for (int piece = 0; piece < 6; ++piece) limiter.throttle(10'000, stop.get_token());
  // The first piece is not delayed. Each later piece waits 10 ms: the previous piece takes that at the limit.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST(SaveRateLimiter, DoesNotPauseWithoutALimit) {
  SaveRateLimiter limiter(0);
  const std::stop_source stop;
  // With a limit of 10 GB/s, this would take over a century.
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_NO_THROW(limiter.throttle(std::numeric_limits<std::uint64_t>::max(), stop.get_token()));
  }
}

TEST(SaveRateLimiter, ThrowsCancelledIfAlreadyStopped) {
  SaveRateLimiter limiter(0);
  std::stop_source stop;
  stop.request_stop();
  error_of(Code::cancelled, [&] { limiter.throttle(1, stop.get_token()); });
}

TEST(SaveRateLimiter, ThrowsCancelledIfStoppedDuringAPause) {
  SaveRateLimiter limiter(1);
  std::stop_source stop;
  limiter.throttle(1'000'000, stop.get_token());  // the next call pauses for eleven days
  const std::jthread stopper([&, caller = gettid()] {
    EXPECT_TRUE(wait_until_asleep(caller));
    stop.request_stop();
  });
  error_of(Code::cancelled, [&] { limiter.throttle(1, stop.get_token()); });
}

}  // namespace
}  // namespace capstan::ps
