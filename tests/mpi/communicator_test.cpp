// communicator_test.cpp -- non-blocking receives and duplication; broadcasts.
#include "mpi/communicator.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "mpi/outbox.hpp"
#include "support/poll.hpp"

namespace capstan::mpi {
namespace {

// A rank may already run the next test, so each test has its own tags.
constexpr int kTag = 7;
constexpr int kOtherTag = 8;
constexpr int kEmpty = 9;
constexpr int kRequested = 10;

TEST(Communicator, HasItsRankAndSize) {
  EXPECT_TRUE(was_started());
  const auto world = Communicator::world();
  EXPECT_EQ(world.size(), 3);
  EXPECT_TRUE(world.rank() >= 0 && world.rank() < 3);
}

TEST(Communicator, ReceivesMessagesByTagAndRank) {
  const auto world = Communicator::world();
  EXPECT_FALSE(world.take(kOtherTag).has_value());
  {
    Outbox outbox(world);
    const auto own = static_cast<std::byte>(world.rank());
    if (world.rank() != 0) outbox.send(0, kTag, Bytes(static_cast<std::size_t>(world.rank()), own));
    if (world.rank() == 0) {
      for (const int from : {2, 1}) {
        const auto message = poll([&] { return world.take(kTag, from); });
        ASSERT_TRUE(message.has_value());
        EXPECT_EQ(message->from, from);
        EXPECT_EQ(message->bytes, Bytes(static_cast<std::size_t>(from), static_cast<std::byte>(from)));
      }
    }
    EXPECT_TRUE(outbox.wait(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  }
  EXPECT_FALSE(world.take(kTag).has_value());
}

TEST(Communicator, ReceivesEmptyMessages) {
  const auto world = Communicator::world();
  Outbox outbox(world);
  outbox.send((world.rank() + 1) % 3, kEmpty, {});
  const auto message = poll([&] { return world.take(kEmpty); });
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->from, (world.rank() + 2) % 3);
  EXPECT_TRUE(message->bytes.empty());
}

TEST(Communicator, BroadcastsTheBytesOfRankZero) {
  const auto world = Communicator::world();
  Bytes bytes(1000, static_cast<std::byte>(world.rank() + 1));
  world.broadcast(bytes);
  EXPECT_EQ(bytes, Bytes(1000, std::byte{1}));
}

TEST(Communicator, DuplicationCompletesWhenAllRanksTakePart) {
  const auto world = Communicator::world();
  // Rank 2 starts last, after the others have reported that the duplication is incomplete.
  if (world.rank() == 2) {
    for (const int from : {0, 1}) ASSERT_TRUE(poll([&] { return world.take(kRequested, from); }).has_value());
  }
  Duplicate duplicate(world);
  Outbox outbox(world);
  if (world.rank() != 2) {
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(duplicate.done());
    outbox.send(2, kRequested, {});
  }
  ASSERT_TRUE(poll([&] { return duplicate.done() ? std::optional(true) : std::nullopt; }).has_value());
  const Communicator own = duplicate.communicator();
  EXPECT_EQ(own.rank(), world.rank());
  EXPECT_EQ(own.size(), world.size());

  // Both communicators have separate tag spaces.
  {
    Outbox to_next(own);
    to_next.send((own.rank() + 1) % 3, kRequested, Bytes(3));
    EXPECT_EQ(poll([&] { return own.take(kRequested); })->bytes.size(), 3U);
    EXPECT_FALSE(world.take(kRequested).has_value());
  }
  duplicate.free();
}

}  // namespace
}  // namespace capstan::mpi
