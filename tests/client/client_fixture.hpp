// client_fixture.hpp -- a client and real ps, reached by mapped memory, RMA or messages.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/partitioners.hpp"
#include "client/client.hpp"
#include "strategy/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan::client {

/// Network between the ranks, and the setting "window".
struct PathParam {
  Network network = Network::loop;
  std::string window = "auto";
};

inline std::string path_name(const testing::TestParamInfo<PathParam>& info) {
  return (info.param.network == Network::loop ? "loop_" : "ucx_") + info.param.window;
}

class ClientFixture : public testing::TestWithParam<PathParam> {
 protected:
  /// Starts the ranks; variables of the strategy have `shards` shards each.
  void start(RankThreadsOptions options, std::int64_t shards = 3) {
    options.network = GetParam().network;
    options.flags.emplace_back("window", GetParam().window);
    ranks_ = std::make_unique<RankThreads>(options);
    strategy_ = std::make_unique<strategy::Strategy>(
        ranks_->cluster().runtime(), StrategyOptions{FixedShardsPartitioner{.num_shards = shards}});
  }
  void TearDown() override {
    strategy_.reset();
    ranks_.reset();
  }

  protocol::VariableDescriptor create(const std::string& name, DType dtype, const Shape& shape,
                                      const Optimizer& optimizer = optimizers::SGD{.learning_rate = -1},
                                      const Initializer& initializer = {},
                                      const std::optional<CombinePushes>& combine = {}) {
    return strategy_->variable_creator()
        .create(name, dtype, &shape, {initializer, 0, {}},
                {.optimizer = optimizer, .combine_pushes = combine})
        ->descriptor;
  }
  Client& client() { return strategy_->context().client(); }

  template <class T>
  std::vector<T> pull(const protocol::VariableDescriptor& v) {
    std::vector<T> out(v.rows() * v.width());
    client().pull(v, 0, v.rows(), out.data());
    return out;
  }
  template <class T>
  std::vector<T> lookup(const protocol::VariableDescriptor& v, const std::vector<std::int64_t>& ids) {
    std::vector<T> out(ids.size() * v.width());
    client().lookup(v, ids, out.data());
    return out;
  }
  template <class T>
  void push(const protocol::VariableDescriptor& v, const std::vector<std::int64_t>& ids,
            const std::vector<T>& gradient) {
    ASSERT_EQ(gradient.size(), ids.size() * v.width());
    client().push(v, ids, gradient.data());
  }
  std::unique_ptr<RankThreads> ranks_;
  std::unique_ptr<strategy::Strategy> strategy_;
};

}  // namespace capstan::client
