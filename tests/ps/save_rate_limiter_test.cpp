// save_rate_limiter_test.cpp -- a save is no faster than it may be, and ends when it is told to.
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
  for (int piece = 0; piece < 6; ++piece) limiter.rest(10'000, stop.get_token());
  // The first one begins at once, and each other one when the one before may have been written.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST(SaveRateLimiter, DoesNotRestWithoutALimit) {
  SaveRateLimiter limiter(0);
  const std::stop_source stop;
  // With any limit this would take years.
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_NO_THROW(limiter.rest(std::numeric_limits<std::uint64_t>::max(), stop.get_token()));
  }
}

TEST(SaveRateLimiter, ThrowsCancelledWhenItWasStopped) {
  SaveRateLimiter limiter(0);
  std::stop_source stop;
  stop.request_stop();
  error_of(Code::cancelled, [&] { limiter.rest(1, stop.get_token()); });
}

TEST(SaveRateLimiter, ThrowsCancelledWhenItIsStoppedAtRest) {
  SaveRateLimiter limiter(1);
  std::stop_source stop;
  limiter.rest(1'000'000, stop.get_token());  // which takes eleven days
  const std::jthread stopper([&, resting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(resting));
    stop.request_stop();
  });
  error_of(Code::cancelled, [&] { limiter.rest(1, stop.get_token()); });
}

}  // namespace
}  // namespace capstan::ps
