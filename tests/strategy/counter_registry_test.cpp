// counter_registry_test.cpp -- slots of counters, and their values by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "protocol/push_format.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan::strategy {
namespace {

using Slot = CounterRegistry::Slot;
using CounterValues = std::map<std::string, std::int64_t>;

class CounterRegistryTest : public testing::Test {
 protected:
  CounterValues values() {
    return counters_.by_name(counters_.read_before([] {}));
  }
  void add(const Slot& slot, std::uint64_t delta) {
    (void)strategy_.context().client().fetch_add(slot.ps, slot.index, delta);
  }

  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  Strategy strategy_{ranks_.cluster().runtime(), {}};
  CounterRegistry& counters_ = strategy_.counters();
};

TEST_F(CounterRegistryTest, DistributesCountersOverThePs) {
  EXPECT_EQ(counters_.create("a"), (Slot{0, 0}));
  EXPECT_EQ(counters_.create("b"), (Slot{1, 0}));
  EXPECT_EQ(counters_.create("c"), (Slot{0, 1}));
  EXPECT_EQ(counters_.create("d"), (Slot{1, 1}));
  EXPECT_EQ(counters_.names(), (std::set<std::string>{"a", "b", "c", "d"}));
}

TEST_F(CounterRegistryTest, ReturnsValuesByName) {
  EXPECT_TRUE(values().empty());
  add(counters_.create("z"), 5);
  add(counters_.create("a"), 0);
  add(counters_.create("m"), static_cast<std::uint64_t>(-3));
  EXPECT_EQ(values(), (CounterValues{{"a", 0}, {"m", -3}, {"z", 5}}));
}

TEST_F(CounterRegistryTest, SetsAnyValue) {
  const auto first = counters_.create("first");
  add(counters_.create("second"), 8);
  add(first, 100);
  EXPECT_TRUE(counters_.set("first", 7));
  EXPECT_EQ(values(), (CounterValues{{"first", 7}, {"second", 8}}));
  EXPECT_TRUE(counters_.set("first", -1));
  EXPECT_EQ(values(), (CounterValues{{"first", -1}, {"second", 8}}));
}

TEST_F(CounterRegistryTest, DoesNotSetACounterOfAnotherProcess) {
  counters_.create("first");
  EXPECT_FALSE(counters_.set("second", 7));
  EXPECT_EQ(values(), (CounterValues{{"first", 0}}));
}

TEST_F(CounterRegistryTest, RejectsADuplicateName) {
  counters_.create("steps");
  EXPECT_THAT(error_of(Code::already_exists, [&] { counters_.create("steps"); }),
              testing::HasSubstr("steps"));
  EXPECT_EQ(counters_.create("next"), (Slot{1, 0})) << "a rejected counter takes no slot";
}

TEST_F(CounterRegistryTest, RejectsANameThatNoCheckpointCanHold) {
  (void)error_of(Code::invalid_argument, [&] { counters_.create("a//b"); });
  EXPECT_TRUE(counters_.names().empty());
}

TEST_F(CounterRegistryTest, RejectsMoreCountersThanABoardHolds) {
  const std::uint64_t most = 2 * protocol::BoardLayout::kCounters;
  std::set<Slot> slots;
  for (std::uint64_t i = 0; i < most; ++i) {
    slots.insert(counters_.create("counter " + std::to_string(i)));
  }
  EXPECT_EQ(slots.size(), most);
  const std::string error = error_of(Code::resource_exhausted, [&] { counters_.create("one more"); });
  EXPECT_THAT(error, testing::HasSubstr(std::to_string(most)));
  EXPECT_EQ(values().size(), most);
  EXPECT_FALSE(counters_.set("one more", 5)) << "it would lie beyond the counters of the board";
}

}  // namespace
}  // namespace capstan::strategy
