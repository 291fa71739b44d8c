// closure_priority_queue_test.cpp -- the order in which queued closures are taken.
#include "coordinator/scheduling/closure_priority_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace capstan::coordinator {
namespace {

using testing::ElementsAre;

class ClosurePriorityQueueTest : public testing::Test {
 protected:
  Closure closure(std::uint64_t id, int priority = 0) {
    auto extras = std::make_unique<ClosureExtras>();
    extras->priority = priority;
    Closure made;
    made.id = id;
    made.has_extras = priority != 0;
    made.result = std::make_shared<Result>(board_, std::move(extras));
    return made;
  }
  std::vector<std::uint64_t> drain() {
    std::vector<std::uint64_t> ids;
    queue_.drain([&](const Closure& closure) { ids.push_back(closure.id); });
    return ids;
  }

  std::shared_ptr<ResultBoard> board_ = std::make_shared<ResultBoard>(nullptr);
  ClosurePriorityQueue queue_;
};

TEST_F(ClosurePriorityQueueTest, IsEmptyBeforeTheFirstPushAndAfterTheLastPop) {
  EXPECT_TRUE(queue_.empty());
  queue_.push_back(closure(1));
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(queue_.front().id, 1U);
  EXPECT_EQ(queue_.pop().id, 1U);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ClosurePriorityQueueTest, ReturnsClosuresInTheOrderOfPushes) {
  for (const std::uint64_t id : {3, 1, 2}) queue_.push_back(closure(id));
  EXPECT_THAT(drain(), ElementsAre(3, 1, 2));
}

TEST_F(ClosurePriorityQueueTest, ReturnsTheHigherPriorityFirst) {
  queue_.push_back(closure(1));
  queue_.push_back(closure(2, -1));
  queue_.push_back(closure(3, 5));
  queue_.push_back(closure(4, 5));
  queue_.push_back(closure(5));
  EXPECT_EQ(queue_.size(), 5U);
  EXPECT_EQ(queue_.front().id, 3U);
  EXPECT_THAT(drain(), ElementsAre(3, 4, 1, 5, 2));
}

TEST_F(ClosurePriorityQueueTest, PushFrontPutsAClosureBeforeOthersOfItsPriority) {
  queue_.push_back(closure(1));
  queue_.push_back(closure(2, 5));
  queue_.push_front(closure(3));
  queue_.push_front(closure(4, 5));
  EXPECT_THAT(drain(), ElementsAre(4, 2, 3, 1));
}

TEST_F(ClosurePriorityQueueTest, PushByIdPutsAClosureBeforeThoseWithHigherIds) {
  for (const std::uint64_t id : {1, 3, 5}) queue_.push_back(closure(id));
  for (const std::uint64_t id : {4, 0, 6}) queue_.push_by_id(closure(id));
  EXPECT_THAT(drain(), ElementsAre(0, 1, 3, 4, 5, 6));
}

TEST_F(ClosurePriorityQueueTest, RemovesAClosureFromAnyPosition) {
  for (const std::uint64_t id : {1, 2, 3}) queue_.push_back(closure(id));
  queue_.push_back(closure(4, 7));
  const auto second = queue_.remove(2, 0);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, 2U);
  EXPECT_TRUE(queue_.remove(4, 7));
  EXPECT_EQ(queue_.size(), 2U);
  EXPECT_THAT(drain(), ElementsAre(1, 3));
}

TEST_F(ClosurePriorityQueueTest, DoesNotRemoveAMissingClosure) {
  queue_.push_back(closure(1));
  EXPECT_FALSE(queue_.remove(2, 0));
  EXPECT_FALSE(queue_.remove(1, 3)) << "it has another priority";
  EXPECT_EQ(queue_.size(), 1U);
}

}  // namespace
}  // namespace capstan::coordinator
