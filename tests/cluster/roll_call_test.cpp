// roll_call_test.cpp -- messages about missing ranks.
#include "cluster/bootstrap/roll_call.hpp"

#include <gtest/gtest.h>

namespace capstan::cluster {
namespace {

using std::chrono::seconds;

TEST(RollCall, NamesMissingRanksAndTheirState) {
  RollCall call({"rank 0", "rank 1", "rank 2"}, {});
  EXPECT_EQ(call.missing(), "3 of 3: rank 0 (no contact), rank 1 (no contact), rank 2 (no contact)");
  call.joined(0);
  call.set_state(2, "rank 2 on n4", "its program has not joined yet");
  EXPECT_EQ(call.missing(), "2 of 3: rank 1 (no contact), rank 2 on n4 (its program has not joined yet)");
  call.joined(1);
  call.joined(1);
  EXPECT_FALSE(call.complete()) << "a rank that joins twice counts once";
  call.joined(2);
  EXPECT_TRUE(call.complete());
}

TEST(RollCall, ReportsOncePerPeriodUntilComplete) {
  RollCall call({"rank 0", "rank 1"}, RollCall::Clock::time_point(seconds(100)), seconds(10));
  const auto at = [](int second) { return RollCall::Clock::time_point(seconds(second)); };
  EXPECT_EQ(call.due(at(109)), std::nullopt);
  call.joined(0);
  EXPECT_EQ(call.due(at(110)), "waiting for 1 of 2: rank 1 (no contact)");
  EXPECT_EQ(call.due(at(111)), std::nullopt);
  EXPECT_EQ(call.due(at(125)), "waiting for 1 of 2: rank 1 (no contact)");
  call.joined(1);
  EXPECT_EQ(call.due(at(200)), std::nullopt);
}

TEST(RollCall, TruncatesALongList) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 100; ++rank) names.push_back("rank " + std::to_string(rank));
  RollCall call(names, {});
  call.joined(1);
  EXPECT_EQ(call.missing().substr(0, 48), "99 of 100: rank 0 (no contact), rank 2 (no conta");
  EXPECT_EQ(call.missing().substr(call.missing().size() - 34), "), rank 8 (no contact) and 91 more");
}

}  // namespace
}  // namespace capstan::cluster
