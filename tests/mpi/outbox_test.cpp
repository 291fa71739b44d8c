// outbox_test.cpp -- waits until all sent messages have been received.
#include "mpi/outbox.hpp"

#include <gtest/gtest.h>

#include "support/poll.hpp"

namespace capstan::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOutboxTag = 12;
/// Above the eager limit of any MPI.
constexpr std::size_t kLarge = 8 << 20;

TEST(Outbox, WaitReturnsAtOnceWithoutMessages) {
  EXPECT_TRUE(Outbox(Communicator::world()).wait(Clock::now()));
}

TEST(Outbox, WaitsUntilALargeMessageIsReceived) {
  const auto world = Communicator::world();
  if (world.rank() == 2) return;
  Outbox outbox(world);
  if (world.rank() == 0) {
    outbox.send(1, kOutboxTag, Bytes(kLarge, std::byte{5}));
    EXPECT_FALSE(outbox.wait(Clock::now() + std::chrono::milliseconds(50)));
    outbox.send(1, kOutboxTag + 1, {});
    EXPECT_TRUE(outbox.wait(Clock::now() + std::chrono::seconds(20)));
  } else {
    ASSERT_TRUE(poll([&] { return world.take(kOutboxTag + 1, 0); }).has_value());
    const auto message = poll([&] { return world.take(kOutboxTag, 0); });
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->bytes, Bytes(kLarge, std::byte{5}));
  }
}

}  // namespace
}  // namespace capstan::mpi
