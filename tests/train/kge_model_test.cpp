// kge_model_test.cpp -- names and defaults of the models, row indices and random numbers.
#include "train/kge/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "capstan/error.hpp"
#include "train/counter_rng.hpp"
#include "train/kge/row_index.hpp"
#include "train/kge/step.hpp"

namespace capstan::kge {
namespace {

constexpr std::array kAll{ModelKind::transe, ModelKind::distmult, ModelKind::complex, ModelKind::rescal,
                          ModelKind::rotate};

TEST(KgeModel, ParsesItsOwnNames) {
  for (const ModelKind kind : kAll) EXPECT_EQ(parse_model(to_string(kind)), kind);
  for (const char* name : {"", "ComplEx", "tucker", "transe "}) {
    EXPECT_THROW(parse_model(name), Error) << name;
  }
}

TEST(KgeModel, RowsOfRelationsHaveTheWidthOfTheirOperator) {
  EXPECT_EQ(relation_width(ModelKind::complex, 6), 6);
  EXPECT_EQ(relation_width(ModelKind::rescal, 6), 36);
  EXPECT_EQ(relation_width(ModelKind::rescal, 65536), std::int64_t{1} << 32);
  EXPECT_EQ(relation_width(ModelKind::rotate, 6), 3);
}

TEST(KgeModel, DefaultsAreValidStepOptions) {
  for (const ModelKind kind : kAll) {
    const ModelDefaults& defaults = defaults_of(kind);
    EXPECT_NO_THROW(Step({.model = kind,
                          .dim = defaults.dim,
                          .negatives = defaults.negatives,
                          .n3 = defaults.n3,
                          .entities = 100,
                          .relations = 2,
                          .margin = defaults.margin}));
    EXPECT_GT(defaults.learning_rate, 0);
    EXPECT_GT(defaults.epochs, 0);
  }
}

TEST(KgeRowIndex, AgreesWithAMap) {
  std::mt19937_64 random(1);
  RowIndex index;
  for (const std::int64_t limit :
       {std::int64_t{1}, std::int64_t{50}, std::int64_t{3000}, std::int64_t{1} << 32}) {
    for (const std::size_t size : {1U, 2U, 777U, 5000U}) {
      std::vector<std::int64_t> uses(size);
      std::ranges::generate(
          uses, [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit)); });
      std::map<std::int64_t, std::int32_t> expected;
      for (const std::int64_t id : uses) expected[id] = 0;
      std::int32_t next = 0;
      for (auto& [id, position] : expected) position = next++;

      index.build(uses);
      ASSERT_EQ(index.ids().size(), expected.size());
      for (const auto& [id, position] : expected)
        ASSERT_EQ(index.ids()[static_cast<std::size_t>(position)], id);
      for (std::size_t use = 0; use < size; ++use) ASSERT_EQ(index.positions()[use], expected[uses[use]]);
    }
  }
}

TEST(KgeCounterRng, IsUniformBelowItsLimit) {
  constexpr std::uint64_t kBuckets = 10, kDraws = 100'000;
  for (const std::uint64_t stream : {0U, 1U, 1000U}) {
    const train::CounterRng random(42, stream);
    std::array<int, kBuckets> count{};
    for (std::uint64_t i = 0; i < kDraws; ++i) ++count.at(random.below(kBuckets, i));
    for (const int observed : count)
      EXPECT_NEAR(observed, kDraws / kBuckets, 500);  // five standard deviations
  }
  EXPECT_NE(train::CounterRng(1, 2).bits(0), train::CounterRng(2, 1).bits(0));
}

}  // namespace
}  // namespace capstan::kge
