// cluster_fixture.hpp -- a cluster of 1, 2 or 3 ps and a worker, whose ranks are threads, and its strategy.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "capstan/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {

using Ids = std::vector<std::int64_t>;

class ClusterFixture : public testing::TestWithParam<int> {
 protected:
  int ps() const { return GetParam(); }
  /// Ends the previous ranks, if any, and starts new ones.
  void start(StrategyOptions options = {}) {
    stop();
    ranks_ = std::make_unique<RankThreads>(
        RankThreadsOptions{.ranks = ps() + 2, .flags = {{"ps", std::to_string(ps())}}});
    strategy_ = std::make_unique<ParameterServerStrategy>(ranks_->cluster(), std::move(options));
  }
  void stop() {
    strategy_.reset();
    ranks_.reset();
  }
  void TearDown() override { stop(); }

  ParameterServerStrategy& strategy() { return *strategy_; }
  /// Index of the ps of each shard.
  static std::vector<int> ps_of_shards(const AnyVariable& variable) {
    std::vector<int> all;
    for (const ShardInfo& shard : variable.shards()) all.push_back(shard.ps);
    return all;
  }
  /// Number of rows of each shard.
  static std::vector<std::uint64_t> sizes(const AnyVariable& variable) {
    std::vector<std::uint64_t> sizes;
    for (const ShardInfo& shard : variable.shards()) sizes.push_back(shard.rows);
    return sizes;
  }

 private:
  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
};

inline std::string ps_name(const testing::TestParamInfo<int>& info) {
  return std::to_string(info.param) + "_ps";
}

}  // namespace capstan
