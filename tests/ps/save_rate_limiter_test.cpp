// save_rate_limiter_test.cpp -- tests that a save keeps its rate limit and can be cancelled.
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
  // The first piece is not delayed; each further piece waits for the time of the previous one.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST(SaveRateLimiter, DoesNotPauseWithoutALimit) {
  SaveRateLimiter limiter(0);
  const std::stop_source stop;
  // With any limit this would take years.
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_NO_THROW(limiter.throttle(std::numeric_limits<std::uint64_t>::max(), stop.get_token()));
  }
}

TEST(SaveRateLimiter, ThrowsCancelledIfStoppedBefore) {
  SaveRateLimiter limiter(0);
  std::stop_source stop;
  stop.request_stop();
  error_of(Code::cancelled, [&] { limiter.throttle(1, stop.get_token()); });
}

TEST(SaveRateLimiter, ThrowsCancelledIfStoppedDuringAPause) {
  SaveRateLimiter limiter(1);
  std::stop_source stop;
  limiter.throttle(1'000'000, stop.get_token());  // the next call pauses for eleven days
  const std::jthread stopper([&, resting = gettid()] {
    EXPECT_TRUE(wait_until_asleep(resting));
    stop.request_stop();
  });
  error_of(Code::cancelled, [&] { limiter.throttle(1, stop.get_token()); });
}

}  // namespace
}  // namespace capstan::ps
