// communicator_test.cpp -- messages that come, that have not come, and a duplicate that waits for all.
#include "mpi/communicator.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "mpi/outbox.hpp"
#include "support/poll.hpp"

namespace capstan::mpi {
namespace {

// A rank may be a test ahead of another: each test has tags of its own.
constexpr int kTag = 7;
constexpr int kOtherTag = 8;
constexpr int kEmpty = 9;
constexpr int kAsked = 10;

TEST(Communicator, KnowsItsRanks) {
  const auto world = Communicator::world();
  EXPECT_EQ(world.size(), 3);
  EXPECT_TRUE(world.rank() >= 0 && world.rank() < 3);
}

TEST(Communicator, TakesWhatHasComeByTagAndRank) {
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

TEST(Communicator, AnEmptyMessageIsOne) {
  const auto world = Communicator::world();
  Outbox outbox(world);
  outbox.send((world.rank() + 1) % 3, kEmpty, {});
  const auto message = poll([&] { return world.take(kEmpty); });
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->from, (world.rank() + 2) % 3);
  EXPECT_TRUE(message->bytes.empty());
}

TEST(Communicator, BroadcastsRankZerosBytes) {
  const auto world = Communicator::world();
  Bytes bytes(1000, static_cast<std::byte>(world.rank() + 1));
  world.broadcast(bytes);
  EXPECT_EQ(bytes, Bytes(1000, std::byte{1}));
}

TEST(Communicator, ADuplicateIsThereWhenAllHaveAsked) {
  const auto world = Communicator::world();
  // The others cannot have it before the last one asks, which is after they have said that they have not.
  if (world.rank() == 2) {
    for (const int from : {0, 1}) ASSERT_TRUE(poll([&] { return world.take(kAsked, from); }).has_value());
  }
  Duplicate duplicate(world);
  Outbox outbox(world);
  if (world.rank() != 2) {
    for (int look = 0; look < 20; ++look) EXPECT_FALSE(duplicate.done());
    outbox.send(2, kAsked, {});
  }
  ASSERT_TRUE(poll([&] { return duplicate.done() ? std::optional(true) : std::nullopt; }).has_value());
  const Communicator own = duplicate.communicator();
  EXPECT_EQ(own.rank(), world.rank());
  EXPECT_EQ(own.size(), world.size());

  // A tag of the one is not a tag of the other.
  {
    Outbox to_next(own);
    to_next.send((own.rank() + 1) % 3, kAsked, Bytes(3));
    EXPECT_EQ(poll([&] { return own.take(kAsked); })->bytes.size(), 3U);
    EXPECT_FALSE(world.take(kAsked).has_value());
  }
  duplicate.free();
}

}  // namespace
}  // namespace capstan::mpi
