// table_functions_test.cpp -- dynamic tables as arguments of functions.
#include <gtest/gtest.h>

#include <vector>

#include "capstan/coordinator.hpp"
#include "capstan/dynamic_table.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Keys = std::vector<std::int64_t>;
using Floats = std::vector<float>;

std::uint64_t add_to(const DynamicTable<float>& t, std::int64_t key) {
  t.push(Keys{key, key + 1}, Floats{1, 10});
  return t.lookup_or_insert(Keys{-1}).size();
}

TEST(TableFunctions, PushesOfFunctionsAreVisibleAfterJoin) {
  const RankThreads ranks({.ranks = 5, .flags = {{"ps", "2"}}});
  ParameterServerStrategy strategy(ranks.cluster());
  ClusterCoordinator coordinator(strategy);
  const auto scope = strategy.scope();
  const DynamicTable<float> t("user", 1, {}, {.optimizer = optimizers::SGD{.learning_rate = -1}});
  std::vector<RemoteValue<std::uint64_t>> results;
  for (std::int64_t key = 0; key < 100; ++key)
    results.push_back(coordinator.schedule<&add_to>(t, 2 * (key % 50)));
  coordinator.join();
  EXPECT_EQ(results.front().fetch(), 1U);
  EXPECT_EQ(t.lookup(Keys{0, 1, 98, 99}).values, (Floats{2, 20, 2, 20}));
  EXPECT_EQ(t.size(), 101U);
}

}  // namespace
}  // namespace capstan
