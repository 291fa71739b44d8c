// push_numbering_test.cpp -- two runs of a closure give equal pushes equal numbers.
#include "client/push_numbering.hpp"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

/// Returns (call, part) of the next entry to a ps.
std::pair<std::uint32_t, std::uint32_t> next_entry(PushNumbering& numbering, int ps) {
  protocol::PushHeader header;
  numbering.number(header, ps);
  return {header.call, header.part};
}

using Numbers = std::pair<std::uint32_t, std::uint32_t>;

TEST(PushNumbering, CountsPushesOutsideOfClosures) {
  PushNumbering numbering(1);
  std::uint32_t pushes = 0;
  for (int run = 0; run < 2; ++run) {
    pushes += 2;
    numbering.next_push();
    numbering.next_push();
    protocol::PushHeader header;
    numbering.number(header, 0);
    numbering.number(header, 0);
    EXPECT_EQ(header.closure, 0U);
    EXPECT_EQ(header.again, 0);
    EXPECT_EQ(header.call, pushes);
    EXPECT_EQ(header.part, 0U);
    numbering.begin({.id = 7});
    numbering.next_push();
    ++pushes;
    EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 0));
    numbering.begin({});
  }
}

TEST(PushNumbering, NamesTheClosureTheRunAndTheReplica) {
  PushNumbering numbering(1);
  numbering.begin({.id = 7, .again = true});
  numbering.push_as(3);
  numbering.next_push();
  protocol::PushHeader header;
  numbering.number(header, 0);
  EXPECT_EQ(header.closure, 7U);
  EXPECT_EQ(header.again, 1);
  EXPECT_EQ(header.replica, 3);
  numbering.begin({.id = 8});
  numbering.next_push();
  numbering.number(header, 0);
  EXPECT_EQ(header.closure, 8U);
  EXPECT_EQ(header.again, 0);
  EXPECT_EQ(header.replica, 0);
}

TEST(PushNumbering, APushOfEveryRunTakesNoNumberOfTheClosure) {
  PushNumbering numbering(1);
  numbering.begin({.id = 7});
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 0));
  numbering.next_push_of_every_run();
  protocol::PushHeader header;
  numbering.number(header, 0);
  EXPECT_EQ(header.closure, 0U);
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 0), Numbers(1, 0));
}

TEST(PushNumbering, CountsEntriesOfAPushByPs) {
  PushNumbering numbering(2);
  numbering.begin({.id = 7});
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 0));
  EXPECT_EQ(next_entry(numbering, 1), Numbers(0, 0));
  EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 1));
  EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 2));
  EXPECT_EQ(next_entry(numbering, 1), Numbers(0, 1));
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 1), Numbers(1, 0));
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 0), Numbers(2, 0)) << "the second push sent nothing to this ps";
}

TEST(PushNumbering, CountsPushesByReplica) {
  PushNumbering numbering(1);
  const auto push = [&](int replica) {
    numbering.push_as(replica);
    numbering.next_push();
    return next_entry(numbering, 0).first;
  };
  numbering.begin({.id = 7});
  EXPECT_EQ(push(1), 0U);
  EXPECT_EQ(push(1), 1U);
  EXPECT_EQ(push(0), 0U);
  EXPECT_EQ(push(1), 2U);
  numbering.begin({.id = 7, .again = true});
  EXPECT_EQ(push(0), 0U) << "the replicas push in another order";
  EXPECT_EQ(push(1), 0U);
}

TEST(PushNumbering, SkippedPushUsesANumber) {
  PushNumbering numbering(1);
  numbering.begin({.id = 7});
  numbering.next_push();
  numbering.next_push();
  EXPECT_EQ(next_entry(numbering, 0), Numbers(1, 0));
}

/// A second run with the same closure id restarts at part 0.
TEST(PushNumbering, SecondRunRestartsParts) {
  PushNumbering numbering(1);
  for (const bool again : {false, true}) {
    numbering.begin({.id = 7, .again = again});
    numbering.next_push();
    EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 0));
    EXPECT_EQ(next_entry(numbering, 0), Numbers(0, 1));
  }
}

}  // namespace
}  // namespace capstan::client
