// update_group_registry_test.cpp -- numbers and names of update groups, and the limits of their options.
#include "strategy/update_group_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "protocol/push_format.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan::strategy {
namespace {

using testing::HasSubstr;

class UpdateGroupRegistryTest : public testing::Test {
 protected:
  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  Strategy strategy_{ranks_.cluster().runtime(), {}};
  UpdateGroupRegistry& groups_ = strategy_.update_groups();
};

TEST_F(UpdateGroupRegistryTest, NumbersGroupsFromOne) {
  EXPECT_EQ(groups_.create("a", Synchronous{}), 1U);
  EXPECT_EQ(groups_.create("b", StaleSynchronous{2}), 2U);
  EXPECT_THAT(groups_.names(), testing::ElementsAre("a", "b"));
  EXPECT_NO_THROW(groups_.restart(2, "b"));
}

TEST_F(UpdateGroupRegistryTest, AsynchronousGroupsHaveNoNumber) {
  EXPECT_EQ(groups_.create("a", Asynchronous{}), 0U);
  EXPECT_EQ(groups_.create("b", Asynchronous{}), 0U);
  EXPECT_EQ(groups_.create("c", Synchronous{}), 1U);
  EXPECT_THAT(groups_.names(), testing::ElementsAre("c"));
  EXPECT_NO_THROW(groups_.restart(0, "a"));
}

TEST_F(UpdateGroupRegistryTest, RejectsBadOptionsAndDuplicateNames) {
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { groups_.create("g", StaleSynchronous{-1}); }),
              HasSubstr("-1"));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] { groups_.create("g", Synchronous{.average = true, .backup_workers = 9}); }),
              HasSubstr("9 backup workers"));
  EXPECT_TRUE(groups_.names().empty());
  groups_.create("g", Asynchronous{});
  groups_.create("h", Synchronous{});
  for (const std::string name : {"g", "h"}) {
    EXPECT_THAT(error_of(Code::already_exists, [&] { groups_.create(name, Asynchronous{}); }),
                HasSubstr(name));
    EXPECT_THAT(error_of(Code::already_exists, [&] { groups_.create(name, Synchronous{}); }),
                HasSubstr(name));
  }
}

TEST_F(UpdateGroupRegistryTest, RejectsMoreGroupsThanABoardHolds) {
  for (std::uint64_t i = 0; i < protocol::BoardLayout::kGroups; ++i) {
    groups_.create("group " + std::to_string(i), Synchronous{});
  }
  EXPECT_THAT(error_of(Code::resource_exhausted, [&] { groups_.create("one more", Synchronous{}); }),
              HasSubstr("one more"));
}

}  // namespace
}  // namespace capstan::strategy
