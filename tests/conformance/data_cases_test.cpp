// data_cases_test.cpp -- edge cases of sharding and rebatching.
// table.py generates docs/conformance.md from the markers above the tests, such as "A4.11: same."
#include <gmock/gmock.h>

#include "capstan/input.hpp"
#include "support/expect_error.hpp"
#include "support/read_all.hpp"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A4.11: same.
TEST(DataCases, SinglePipelineReadsAllDataWithEveryPolicy) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::off, AutoShardPolicy::automatic,
                                       AutoShardPolicy::file, AutoShardPolicy::data, AutoShardPolicy::hint}) {
    EXPECT_THAT(all(auto_shard(Data::range(4), policy, 1, 0)), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(all(auto_shard(Data::range(0), policy, 1, 0)), IsEmpty());
    EXPECT_EQ(all(auto_shard(Data::range(4).batch(4).rebatch({3, 1}), policy, 1, 0, 2)),
              (Steps{{0, 1, 2}, {3}}));
  }
  const auto hinted = Data::range(4).shard(kShardHint, kShardHint);
  EXPECT_THAT(all(auto_shard(hinted, AutoShardPolicy::hint, 1, 0)), ElementsAre(0, 1, 2, 3));
}

// A4.11: same.
TEST(DataCases, EquivalentPipelinesHaveEqualShards) {
  for (std::int64_t index = 0; index < 3; ++index) {
    const auto shard = [&](const auto& dataset) {
      return all(auto_shard(dataset, AutoShardPolicy::data, 3, index));
    };
    Numbers mine;
    for (std::int64_t i = index; i < 11; i += 3) mine.push_back(i);
    EXPECT_EQ(shard(Data::range(11)), mine);
    EXPECT_EQ(shard(Data::range(11).prefetch(2).prefetch(1)), mine);
    EXPECT_EQ(shard(Data::range(5).concatenate(Data::range(5, 11))), mine);
    EXPECT_EQ(shard(Data::range(20).take(11).cache()), mine);
    EXPECT_EQ(shard(Data::range(-4, 11).skip(4).shuffle(1)), mine);
  }
  EXPECT_THAT(all(auto_shard(Data::range(3), AutoShardPolicy::data, 3, 2)),
              ElementsAre(2));  // one element per shard
}

// A4.11: same.
TEST(DataCases, RejectsInvalidIndexCountAndPolicy) {
  expect_error_naming(Code::invalid_argument, {"auto_shard", "-1", "3", "2"},
                      [] { auto_shard(Data::range(3), AutoShardPolicy::off, 3, -1); });
  expect_error_naming(Code::invalid_argument, {"auto_shard", "0"},
                      [] { auto_shard(Data::range(3), AutoShardPolicy::off, 0, 0); });
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] { auto_shard(Data::range(3), static_cast<AutoShardPolicy>(7), 3, 0); }),
              HasSubstr("policy is 7"));
}

// A4.12, A4.13: same.
TEST(DataCases, SmallAndPartialGlobalBatches) {
  EXPECT_EQ(batch_sizes_for_worker(2, {.workers = 2, .worker = 0, .replicas = 2}), (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(batch_sizes_for_worker(2, {.workers = 2, .worker = 1, .replicas = 2}), (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(batch_sizes_for_worker(1, {.workers = 1, .worker = 0, .replicas = 3}), (Numbers{1, 0, 0}));
  const auto cut = [](std::int64_t elements, std::int64_t size, bool drop, std::vector<std::int64_t> sizes) {
    return all(Data::range(elements).batch(size, drop).rebatch(std::move(sizes), drop));
  };
  EXPECT_EQ(cut(3, 1, false, {1, 0, 0}), (Steps{{0}, {}, {}, {1}, {}, {}, {2}, {}, {}}));
  EXPECT_EQ(cut(5, 2, true, {1, 1, 0, 0}), (Steps{{0}, {1}, {}, {}, {2}, {3}, {}, {}}));
  EXPECT_EQ(cut(5, 4, false, {3, 1}), (Steps{{0, 1, 2}, {3}, {4}}));
  EXPECT_EQ(cut(5, 4, true, {3, 1}), (Steps{{0, 1, 2}, {3}}));
  EXPECT_EQ(cut(0, 4, false, {3, 1}), Steps{});
}

}  // namespace
}  // namespace capstan
