// kge_evaluator_test.cpp -- compares the ranking of variables on ps by a GPU with that by the CPU, also if
// the memory of the GPU does not suffice or messages are rounded.
// Tests: src/train/kge/device_evaluator.cpp
#include "train/kge/evaluator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "cluster/runtime.hpp"
#include "gpu/gpu.hpp"
#include "tests/support/gpu_flags.hpp"
#include "tests/support/rank_threads.hpp"
#include "tests/train/plain_kge_ranking.hpp"

namespace capstan::kge {
namespace {

constexpr std::int64_t kKgeEvaluatorEntities = 20'000, kRelations = 3;
constexpr int kDim = 48;  // 3.7 MiB of entities: more than one buffer of pinned memory

/// Two ps; the test's thread is the coordinator, which reads on the same paths as a worker.
class KgeEvaluator : public testing::Test {
 protected:
  KgeEvaluator()
      : ranks_([] {
          auto flags = gpu_flags();
          flags.emplace_back("ps", "2");
          return RankThreadsOptions{.ranks = 4, .flags = flags};
        }()),
        strategy_(ranks_.cluster(), {FixedShardsPartitioner{2}}),
        scope_(strategy_.scope()),
        entities_("entities", Shape{kKgeEvaluatorEntities, kDim}, initializers::normal(0, 0.5, 1)),
        relations_("relations", Shape{2 * kRelations, kDim}, initializers::normal(0, 0.5, 2)) {}

  static RankerOptions options_of(ModelKind model) {
    return {model, kDim, kKgeEvaluatorEntities, kRelations};
  }
  TrueAnswers answers() const { return {triples_, kRelations}; }
  Metrics rank(Evaluator& evaluator, std::int64_t evaluation) const {
    return evaluator.rank(triples_, evaluation, entities_, relations_);
  }

  RankThreads ranks_;
  ParameterServerStrategy strategy_;
  ParameterServerStrategy::Scope scope_;
  Variable<float> entities_, relations_;
  const std::vector<Triple> triples_ = random_triples(12, kKgeEvaluatorEntities, kRelations, 3);
};

/// Removes the stand-ins after all objects on them are destroyed.
class KgeEvaluatorOnGpu : public KgeEvaluator {
 public:
  static void TearDownTestSuite() { forget_stand_ins(); }
};

void expect_same(const Metrics& a, const Metrics& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_NEAR(a.mrr(), b.mrr(), 1e-6);
  EXPECT_EQ(a.hits10_sum, b.hits10_sum);
}

TEST_F(KgeEvaluatorOnGpu, RanksLikeTheHost) {
  for (const ModelKind model : {ModelKind::transe, ModelKind::distmult, ModelKind::complex}) {
    SCOPED_TRACE(to_string(model));
    Evaluator host(answers(), options_of(model), std::nullopt);
    Evaluator gpu(answers(), options_of(model), 0);
    const Metrics expected = rank(host, 1);
    expect_same(rank(gpu, 1), expected);
    expect_same(rank(gpu, 1), expected);
    EXPECT_TRUE(gpu.end());
    EXPECT_FALSE(host.end());
  }
}

TEST_F(KgeEvaluatorOnGpu, PullsTheTableOncePerEvaluation) {
  Evaluator host(answers(), options_of(ModelKind::distmult), std::nullopt);
  Evaluator gpu(answers(), options_of(ModelKind::distmult), 0);
  const Metrics before = rank(gpu, 1);
  std::vector<float> values = entities_.pull();
  std::reverse(values.begin(), values.end());
  entities_.assign(values);
  EXPECT_EQ(rank(gpu, 1).mrr_sum, before.mrr_sum) << "the same evaluation";
  const Metrics after = rank(host, 2);
  EXPECT_NE(after.mrr_sum, before.mrr_sum);
  expect_same(rank(gpu, 2), after);
  (void)gpu.end();
  expect_same(rank(gpu, 2), after);  // the table is pulled again
}

TEST_F(KgeEvaluatorOnGpu, FallsBackToCpuWhenGpuMemoryIsExhausted) {
  Evaluator host(answers(), options_of(ModelKind::complex), std::nullopt);
  Evaluator gpu(answers(), options_of(ModelKind::complex), 0);
  const Metrics expected = rank(host, 1);
  const std::uint64_t free = gpu::info(0).free_bytes;
  // Memory of another user: the rest is less than the reserve of 256 MiB. A GPU cannot give all its free
  // memory to one allocation.
  std::optional<gpu::Memory> taken(std::in_place, 0, free - (std::uint64_t{128} << 20));
  testing::internal::CaptureStderr();
  EXPECT_EQ(rank(gpu, 1).mrr_sum, expected.mrr_sum) << "bitwise equal";
  EXPECT_EQ(rank(gpu, 1).mrr_sum, expected.mrr_sum);
  EXPECT_EQ(rank(gpu, 2).mrr_sum, expected.mrr_sum);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string words = "20000 entities of 48 floats on GPU 0";
  const auto first = log.find(words);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(words, first + 1), std::string::npos) << "warned more than once";
  taken.reset();
  expect_same(rank(gpu, 3), expected);
  EXPECT_LT(gpu::info(0).free_bytes, free - kKgeEvaluatorEntities * kDim * 4) << "the GPU ranks again";
}

/// Ranks that read through messages; with true, lookups are of int8, otherwise all reads are of bfloat16.
class KgeEvaluatorWithRoundedMessages : public testing::TestWithParam<bool> {
 public:
  static void TearDownTestSuite() { forget_stand_ins(); }
};

TEST_P(KgeEvaluatorWithRoundedMessages, RanksExactRows) {
  constexpr std::int64_t kRankedEntities = 500;
  auto flags = gpu_flags();
  flags.insert(flags.end(), {{"ps", "2"}, {"window", "am"}});
  const RankThreads ranks{{.ranks = 4, .flags = flags}};
  ParameterServerStrategy strategy{ranks.cluster(),
                                   {.variable_partitioner = FixedShardsPartitioner{2},
                                    .communication_dtype = GetParam() ? DType::float32 : DType::bfloat16,
                                    .int8_lookups = GetParam()}};
  const auto scope = strategy.scope();
  PlainTables tables(ModelKind::distmult, kDim, kRankedEntities, kRelations);
  tables.fill_normal(5);
  const Variable<float> entities("entities", Shape{kRankedEntities, kDim});
  const Variable<float> relations("relations", Shape{2 * kRelations, kDim});
  entities.assign(tables.entities);
  relations.assign(tables.relations);
  ASSERT_NE(entities.lookup(std::vector<std::int64_t>{0}).values,
            Buffer<float>(std::vector<float>(tables.entities.begin(), tables.entities.begin() + kDim)));

  const std::vector<Triple> triples = random_triples(64, kRankedEntities, kRelations, 6);
  Metrics expected;
  expected.add_ranks(plain_ranks(tables, triples, triples));
  for (const std::optional<int> device : {std::optional<int>(), std::optional(0)}) {
    SCOPED_TRACE(device ? "GPU" : "host");
    Evaluator evaluator({triples, kRelations}, {ModelKind::distmult, kDim, kRankedEntities, kRelations},
                        device);
    const Metrics found = evaluator.rank(triples, 1, entities, relations);
    EXPECT_EQ(found.count, expected.count);
    EXPECT_NEAR(found.mrr(), expected.mrr(), 1e-9);
    (void)evaluator.end();
  }
}

INSTANTIATE_TEST_SUITE_P(Messages, KgeEvaluatorWithRoundedMessages, testing::Bool(),
                         [](const auto& test) { return test.param ? "int8" : "bfloat16"; });

}  // namespace
}  // namespace capstan::kge
