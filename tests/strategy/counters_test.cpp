// counters_test.cpp -- the ps that hold counters, and reading and setting counters by name.
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

using CounterPlace = std::pair<std::int32_t, std::uint32_t>;
using CounterValues = std::map<std::string, std::int64_t>;

class CountersTest : public testing::Test {
 protected:
  CounterValues values() {
    return strategy_.by_name(strategy_.at_rest([] {}));
  }
  void add(const CounterPlace& place, std::uint64_t delta) {
    (void)strategy_.context().client().fetch_add(place.first, place.second, delta);
  }

  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  Strategy strategy_{ranks_.cluster().runtime(), {}};
};

TEST_F(CountersTest, AreDistributedRoundRobin) {
  EXPECT_EQ(strategy_.create_counter("a"), CounterPlace(0, 0));
  EXPECT_EQ(strategy_.create_counter("b"), CounterPlace(1, 0));
  EXPECT_EQ(strategy_.create_counter("c"), CounterPlace(0, 1));
  EXPECT_EQ(strategy_.create_counter("d"), CounterPlace(1, 1));
  EXPECT_EQ(strategy_.created_counters(), (std::set<std::string>{"a", "b", "c", "d"}));
}

TEST_F(CountersTest, AreReadByName) {
  EXPECT_TRUE(values().empty());
  add(strategy_.create_counter("z"), 5);
  add(strategy_.create_counter("a"), 0);
  add(strategy_.create_counter("m"), static_cast<std::uint64_t>(-3));
  EXPECT_EQ(values(), (CounterValues{{"a", 0}, {"m", -3}, {"z", 5}}));
}

TEST_F(CountersTest, AreSetRegardlessOfTheirValue) {
  const auto first = strategy_.create_counter("first");
  add(strategy_.create_counter("second"), 8);
  add(first, 100);
  EXPECT_TRUE(strategy_.set_counter("first", 7));
  EXPECT_EQ(values(), (CounterValues{{"first", 7}, {"second", 8}}));
  EXPECT_TRUE(strategy_.set_counter("first", -1));
  EXPECT_EQ(values(), (CounterValues{{"first", -1}, {"second", 8}}));
}

TEST_F(CountersTest, RejectSettingUnknownNames) {
  strategy_.create_counter("first");
  EXPECT_FALSE(strategy_.set_counter("second", 7));
  EXPECT_EQ(values(), (CounterValues{{"first", 0}}));
}

TEST_F(CountersTest, RejectDuplicateNames) {
  strategy_.create_counter("steps");
  EXPECT_THAT(error_of(Code::already_exists, [&] { strategy_.create_counter("steps"); }),
              testing::HasSubstr("steps"));
  EXPECT_EQ(strategy_.create_counter("next"), CounterPlace(1, 0)) << "the rejected counter takes no slot";
}

TEST_F(CountersTest, RejectNamesThatHdf5CannotStore) {
  (void)error_of(Code::invalid_argument, [&] { strategy_.create_counter("a//b"); });
  EXPECT_TRUE(strategy_.created_counters().empty());
}

TEST_F(CountersTest, RejectMoreThanThePsCanHold) {
  const std::uint64_t most = 2 * protocol::BoardLayout::kCounters;
  std::set<CounterPlace> places;
  for (std::uint64_t i = 0; i < most; ++i) {
    places.insert(strategy_.create_counter("counter " + std::to_string(i)));
  }
  EXPECT_EQ(places.size(), most);
  const std::string error = error_of(Code::resource_exhausted, [&] { strategy_.create_counter("one more"); });
  EXPECT_THAT(error, testing::HasSubstr(std::to_string(most)));
  EXPECT_EQ(values().size(), most);
  EXPECT_FALSE(strategy_.set_counter("one more", 5)) << "it would lie behind the counters";
}

}  // namespace
}  // namespace capstan::strategy
