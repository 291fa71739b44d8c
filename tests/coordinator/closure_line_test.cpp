// closure_line_test.cpp -- the order in which queued closures are taken.
#include "coordinator/scheduling/closure_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace capstan::coordinator {
namespace {

using testing::ElementsAre;

class ClosureLineTest : public testing::Test {
 protected:
  Closure closure(std::uint64_t id, int priority = 0) {
    auto extras = std::make_unique<ClosureExtras>();
    extras->priority = priority;
    Closure made;
    made.id = id;
    made.special = priority != 0;
    made.result = std::make_shared<Result>(board_, std::move(extras));
    return made;
  }
  std::vector<std::uint64_t> drain() {
    std::vector<std::uint64_t> ids;
    line_.drain([&](const Closure& closure) { ids.push_back(closure.id); });
    return ids;
  }

  std::shared_ptr<ResultBoard> board_ = std::make_shared<ResultBoard>(nullptr);
  ClosureLine line_;
};

TEST_F(ClosureLineTest, IsEmptyAtFirstAndAfterTheLast) {
  EXPECT_TRUE(line_.empty());
  line_.push_back(closure(1));
  EXPECT_FALSE(line_.empty());
  EXPECT_EQ(line_.size(), 1U);
  EXPECT_EQ(line_.front().id, 1U);
  EXPECT_EQ(line_.pop().id, 1U);
  EXPECT_TRUE(line_.empty());
}

TEST_F(ClosureLineTest, ReturnsClosuresInOrder) {
  for (const std::uint64_t id : {3, 1, 2}) line_.push_back(closure(id));
  EXPECT_THAT(drain(), ElementsAre(3, 1, 2));
}

TEST_F(ClosureLineTest, ReturnsTheHigherPriorityFirst) {
  line_.push_back(closure(1));
  line_.push_back(closure(2, -1));
  line_.push_back(closure(3, 5));
  line_.push_back(closure(4, 5));
  line_.push_back(closure(5));
  EXPECT_EQ(line_.size(), 5U);
  EXPECT_EQ(line_.front().id, 3U);
  EXPECT_THAT(drain(), ElementsAre(3, 4, 1, 5, 2));
}

TEST_F(ClosureLineTest, PutsAReturnedClosureBeforeOthersOfItsPriority) {
  line_.push_back(closure(1));
  line_.push_back(closure(2, 5));
  line_.push_front(closure(3));
  line_.push_front(closure(4, 5));
  EXPECT_THAT(drain(), ElementsAre(4, 2, 3, 1));
}

TEST_F(ClosureLineTest, PutsAClosureBeforeLaterOnes) {
  for (const std::uint64_t id : {1, 3, 5}) line_.push_back(closure(id));
  for (const std::uint64_t id : {4, 0, 6}) line_.push_by_id(closure(id));
  EXPECT_THAT(drain(), ElementsAre(0, 1, 3, 4, 5, 6));
}

TEST_F(ClosureLineTest, RemovesAClosureFromAnyPosition) {
  for (const std::uint64_t id : {1, 2, 3}) line_.push_back(closure(id));
  line_.push_back(closure(4, 7));
  const auto second = line_.remove(2, 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, 2U);
  EXPECT_TRUE(line_.remove(4, 7));
  EXPECT_EQ(line_.size(), 2U);
  EXPECT_THAT(drain(), ElementsAre(1, 3));
}

TEST_F(ClosureLineTest, DoesNotRemoveAMissingClosure) {
  line_.push_back(closure(1));
  EXPECT_FALSE(line_.remove(2, 0));
  EXPECT_FALSE(line_.remove(1, 3)) << "it has another priority";
  EXPECT_EQ(line_.size(), 1U);
}

}  // namespace
}  // namespace capstan::coordinator
