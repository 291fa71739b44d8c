// ps_contents_test.cpp -- whether a spare can restore the shards of a ps from the last checkpoint.
#include "strategy/ps_contents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

using testing::HasSubstr;

class PsContentsTest : public testing::Test {
 protected:
  void add(int ps, std::uint32_t variable, const std::string& name) {
    protocol::CreateShard shard;
    shard.variable = variable;
    shard.name = name;
    contents_.add(ps, shard);
  }
  void checkpoint(std::vector<std::uint32_t> variables, bool restored = false) {
    contents_.set_checkpoint({"/checkpoints/7", 7, std::move(variables), {{0, 2, 5}}, restored});
  }
  std::vector<std::string> shards_of(int ps) const {
    std::vector<std::string> names;
    for (const auto& shard : contents_.failover_of(ps).shards) names.push_back(shard.name);
    return names;
  }
  std::string failure_of(int ps) const {
    return error_of(Code::unavailable, [&] { (void)contents_.failover_of(ps); });
  }

  cluster::CoordinatorMemory memory_;
  PsContents contents_{memory_, /*has_spares=*/true};
};

TEST_F(PsContentsTest, NamesShardsAndCountersOfOnePs) {
  add(0, 1, "a");
  add(1, 2, "b");
  add(0, 2, "b");
  checkpoint({1, 2});
  EXPECT_THAT(shards_of(0), testing::ElementsAre("a", "b"));
  EXPECT_THAT(shards_of(1), testing::ElementsAre("b"));
  EXPECT_EQ(contents_.failover_of(0).directory, "/checkpoints/7");
  EXPECT_EQ(contents_.failover_of(0).counters,
            (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{2, 5}}));
  EXPECT_TRUE(contents_.failover_of(1).counters.empty());
}

// A restarted coordinator finds the shards of "b", which the program creates after the checkpoint: its number
// is lower than that of a variable in the checkpoint.
TEST_F(PsContentsTest, RefusesAVariableThatTheCheckpointLacksWhateverItsNumber) {
  add(0, 1, "a");
  add(0, 2, "b");
  add(0, 3, "c");
  checkpoint({1, 3});
  EXPECT_THAT(failure_of(0), HasSubstr("\"b\""));
  EXPECT_NO_THROW((void)contents_.failover_of(1)) << "it has no shard of b";
}

// A restarted coordinator restores a checkpoint, and the program creates its variables in another order.
TEST_F(PsContentsTest, ARestoredCheckpointIsExtendedInAnyOrder) {
  add(0, 1, "a");
  add(0, 2, "b");
  checkpoint({}, /*restored=*/true);
  EXPECT_THAT(failure_of(0), HasSubstr("\"a\""));
  contents_.extend_checkpoint(2);
  contents_.extend_checkpoint(1);
  contents_.extend_checkpoint(PsContents::Counter{0, 3, 9});
  EXPECT_THAT(shards_of(0), testing::ElementsAre("a", "b"));
  EXPECT_EQ(contents_.failover_of(0).counters.size(), 2U);
}

TEST_F(PsContentsTest, ASavedCheckpointIsNotExtended) {
  add(0, 1, "a");
  checkpoint({});
  contents_.extend_checkpoint(1);
  EXPECT_THAT(failure_of(0), HasSubstr("\"a\""));
}

TEST_F(PsContentsTest, RefusesWithoutACheckpointAndWithAnUpdateGroup) {
  EXPECT_THAT(failure_of(0), HasSubstr("checkpoint"));
  checkpoint({});
  EXPECT_NO_THROW((void)contents_.failover_of(0));
  EXPECT_NO_THROW(contents_.require_no_group());
  contents_.add_group("steps");
  EXPECT_THAT(failure_of(0), HasSubstr("\"steps\""));
  EXPECT_THAT(error_of(Code::unavailable, [&] { contents_.require_no_group(); }), HasSubstr("\"steps\""));
}

TEST_F(PsContentsTest, ARestartedCoordinatorFindsTheCheckpointUnderItsLastName) {
  checkpoint({1});
  contents_.move_checkpoint("/elsewhere", "/wrong");
  contents_.move_checkpoint("/checkpoints/7", "/named");
  const PsContents restarted(memory_, /*has_spares=*/true);
  ASSERT_TRUE(restarted.checkpoint());
  EXPECT_EQ(restarted.checkpoint()->directory, "/named");
  EXPECT_EQ(restarted.checkpoint()->variables, (std::vector<std::uint32_t>{1}));
  contents_.forget_checkpoint();
  EXPECT_FALSE(PsContents(memory_, true).checkpoint());
}

TEST_F(PsContentsTest, WithoutSparesNoCheckpointIsNoted) {
  PsContents contents(memory_, /*has_spares=*/false);
  contents.set_checkpoint({"/checkpoints/7", 7, {}, {}});
  EXPECT_FALSE(contents.checkpoint());
}

}  // namespace
}  // namespace capstan::strategy
