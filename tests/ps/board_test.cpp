// board_test.cpp -- counters and published steps of a board, and additions that recovery can undo.
#include "ps/server/board.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kBoardRanks = 3;

class BoardTest : public testing::Test {
 protected:
  std::uint64_t counter(std::uint64_t index) {
    return transport::word_at(board_.data() + protocol::BoardLayout(kBoardRanks).counter(index)).load();
  }

  transport::LoopHub hub_;
  std::unique_ptr<transport::Fabric> fabric_ = hub_.open();
  Board board_{fabric_->allocate(protocol::BoardLayout(kBoardRanks).bytes()), kBoardRanks};
};

TEST_F(BoardTest, FetchAddReturnsThePreviousValue) {
  EXPECT_EQ(board_.fetch_add(5, 7), 0U);
  EXPECT_EQ(board_.fetch_add(5, 3), 7U);
  EXPECT_EQ(counter(5), 10U);
  EXPECT_EQ(counter(4), 0U);
}

TEST_F(BoardTest, RejectsCounterOutOfRange) {
  const std::uint64_t first_bad = protocol::BoardLayout::kCounters;
  EXPECT_TRUE(Board::has_counter(first_bad - 1));
  EXPECT_FALSE(Board::has_counter(first_bad));
  (void)error_of(Code::out_of_range, [&] { board_.fetch_add(first_bad, 1); });
}

TEST_F(BoardTest, UndoesTheLastEntryOnly) {
  board_.add_by_entry(2, 10, /*entry=*/41);
  board_.add_by_entry(2, 5, /*entry=*/42);
  board_.undo_entry(2, 10, 41);  // not the last one
  EXPECT_EQ(counter(2), 15U);
  board_.undo_entry(2, 5, 42);
  EXPECT_EQ(counter(2), 10U);
  board_.undo_entry(2, 5, 42);  // already undone
  EXPECT_EQ(counter(2), 10U);
}

TEST_F(BoardTest, PublishesStepsPerGroup) {
  board_.set_steps(2, 9);
  const protocol::BoardLayout layout(kBoardRanks);
  EXPECT_EQ(transport::word_at(board_.data() + layout.group(2)).load(), 9U);
  EXPECT_EQ(transport::word_at(board_.data() + layout.group(1)).load(), 0U);
}

}  // namespace
}  // namespace capstan::ps
