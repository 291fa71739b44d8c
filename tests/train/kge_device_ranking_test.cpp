// kge_device_ranking_test.cpp -- compares ranks on a GPU with their definition, with ties, filters and NaN.
// Tests: src/train/kge/device_ranking_bodies.hpp
#include "train/kge/device_ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "tests/gpu/gpu_to_test.hpp"
#include "tests/train/plain_kge_ranking.hpp"

namespace capstan::kge {
namespace {

constexpr ModelKind kAllModels[] = {ModelKind::transe, ModelKind::distmult, ModelKind::complex};

class KgeDeviceRanking : public gpu::OnGpu {
 protected:
  static RankerOptions options_of(const PlainTables& tables) {
    return {tables.model, static_cast<int>(tables.dim), tables.count, tables.relation_count};
  }

  /// Fills the table of the ranker.
  void fill_table(DeviceRanker& ranker, const PlainTables& tables) const {
    float* const table = ranker.make_table();
    gpu::copy(*stream_, table, tables.entities.data(), tables.entities.size() * sizeof(float));
    ranker.compute_norms();
    stream_->wait();
  }

  std::vector<double> ranks(DeviceRanker& ranker, const PlainTables& tables,
                            const std::vector<Triple>& slice) const {
    ranker.plan(slice);
    std::vector<float> rows;
    for (const std::int64_t id : ranker.relation_ids()) {
      const auto begin = tables.relations.begin() + id * static_cast<std::ptrdiff_t>(tables.dim);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(tables.dim));
    }
    const auto device_rows = to_gpu(rows);
    const Metrics metrics = ranker.rank(device_rows.data());
    std::vector<double> found = ranker.ranks();
    Metrics expected;
    for (const double rank : found) expected.add_rank(rank);
    EXPECT_EQ(metrics.count, static_cast<std::int64_t>(2 * slice.size()));
    EXPECT_EQ(metrics.mrr_sum, expected.mrr_sum);
    EXPECT_EQ(metrics.hits10_sum, expected.hits10_sum);
    return found;
  }

  std::vector<double> ranks(const PlainTables& tables, const std::vector<Triple>& test,
                            const std::vector<Triple>& all,
                            std::size_t max_scores = DeviceRanker::kMaxScores) const {
    const TrueAnswers answers(all, tables.relation_count);
    DeviceRanker ranker(options_of(tables), answers, *stream_, max_scores);
    fill_table(ranker, tables);
    return ranks(ranker, tables, test);
  }
};

TEST_F(KgeDeviceRanking, AgreesWithTheDefinitionInBlocksOfAnySize) {
  for (const ModelKind model : kAllModels) {
    for (const int dim : {22, 64, 2}) {
      SCOPED_TRACE(std::string(to_string(model)) + std::to_string(dim));
      const std::vector<Triple> all = random_triples(300, 150, 3, 4);
      const std::vector<Triple> test(all.begin(), all.begin() + 40);
      PlainTables tables(model, dim, 150, 3);
      tables.fill_normal(5);
      const std::vector<double> expected = plain_ranks(tables, test, all);
      EXPECT_EQ(ranks(tables, test, all), expected);
      EXPECT_EQ(ranks(tables, test, all, 7 * 33), expected) << "several blocks of entities";
      const std::vector<Triple> few(all.begin(), all.begin() + 1);  // each score is a separate matrix product
      EXPECT_EQ(ranks(tables, few, all, 1), plain_ranks(tables, few, all)) << "one score at a time";
    }
  }
}

TEST_F(KgeDeviceRanking, AgreesExactlyWithManyEqualScores) {
  for (const ModelKind model : kAllModels) {
    SCOPED_TRACE(to_string(model));
    const std::vector<Triple> all = random_triples(2000, 300, 2, 6);
    const std::vector<Triple> test(all.begin(), all.begin() + 60);
    PlainTables tables(model, 4, 300, 2);
    tables.fill_exact(7);
    const std::vector<double> expected = plain_ranks(tables, test, all);
    EXPECT_GT(std::count_if(expected.begin(), expected.end(), [](double r) { return r != std::floor(r); }),
              10);
    EXPECT_EQ(ranks(tables, test, all), expected);
  }
}

TEST_F(KgeDeviceRanking, DistinguishesRowsThatDifferInLastBits) {
  for (const ModelKind model : kAllModels) {
    PlainTables tables(model, 64, 300, 1);
    tables.fill_normal(8);
    for (std::size_t id = 1; id < 300; ++id) {
      std::copy_n(tables.entities.begin(), 64,
                  tables.entities.begin() + static_cast<std::ptrdiff_t>(id * 64));
      float& value = tables.entities[id * 64 + id % 64];
      for (std::size_t bits = 0; bits < id % 3; ++bits) value = std::nextafter(value, 9.0F);
    }
    const std::vector<Triple> test{{3, 0, 8}, {100, 0, 250}, {7, 0, 64}};
    EXPECT_EQ(ranks(tables, test, test), plain_ranks(tables, test, test)) << to_string(model);
  }
}

/// One-dimensional DistMult: entity i is the number values[i], and each relation is 1. The score of a triple
/// is the product of its two entities.
PlainTables scalar_tables(std::vector<float> values) {
  PlainTables tables(ModelKind::distmult, 1, static_cast<std::int64_t>(values.size()), 1);
  tables.entities = std::move(values);
  tables.relations = {1, 1};
  return tables;
}

TEST_F(KgeDeviceRanking, TiesShareMeanRankAndKnownAnswersAreExcluded) {
  using Ranks = std::vector<double>;
  const PlainTables tables = scalar_tables({1, 5, 3, 3, 3, 2});
  const auto tail = [&](Triple test, std::vector<Triple> known) {
    known.push_back(test);
    return ranks(tables, {test}, known).front();
  };
  EXPECT_EQ(tail({0, 0, 1}, {}), 1);
  EXPECT_EQ(tail({0, 0, 2}, {}), 3) << "tied with 3 and 4";
  EXPECT_EQ(tail({0, 0, 5}, {}), 5);
  EXPECT_EQ(tail({0, 0, 2}, {{0, 0, 1}, {0, 0, 4}}), 1.5);
  EXPECT_EQ(tail({0, 0, 5}, {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 0, 4}}), 1);
  EXPECT_EQ(tail({0, 0, 5}, {{2, 0, 1}, {3, 0, 2}}), 5) << "answers of other queries";
  // Known heads of tail 2 are 0, 1 and 3. Entities 2, 4 and 5 score higher than head 0 (1 x 3). Entities 2
  // and 4 tie with head 3 (3 x 3).
  EXPECT_EQ(ranks(tables, {{0, 0, 2}, {3, 0, 2}}, {{0, 0, 2}, {3, 0, 2}, {1, 0, 2}}), (Ranks{3, 3, 4, 2}));
  EXPECT_EQ(ranks(tables, {{0, 0, 2}}, {}).front(), 3) << "the answer need not be a known triple";
}

TEST_F(KgeDeviceRanking, NanScoresCountAsBetter) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ranks(scalar_tables({kNan, kNan, kNan, kNan}), {{0, 0, 1}}, {{0, 0, 1}}),
            (std::vector<double>{4, 4}));
  EXPECT_EQ(ranks(scalar_tables({1, 5, kNan, 3}), {{0, 0, 1}}, {{0, 0, 1}}).front(), 2) << "one NaN row";
  EXPECT_EQ(ranks(scalar_tables({1, 5, kInfinity, 3}), {{0, 0, 3}}, {{0, 0, 3}}).front(), 3)
      << "one infinite row";
  // A known answer is excluded whatever its score.
  EXPECT_EQ(ranks(scalar_tables({1, 5, kNan, 3}), {{0, 0, 1}}, {{0, 0, 1}, {0, 0, 2}}).front(), 1);
}

TEST_F(KgeDeviceRanking, EqualRowsRankInTheMiddle) {
  for (const ModelKind model : kAllModels) {
    PlainTables tables(model, 16, 1500, 1);
    tables.fill_normal(9);
    for (std::ptrdiff_t id = 1; id < 1500; ++id) {
      std::copy_n(tables.entities.begin(), 16, tables.entities.begin() + id * 16);
    }
    EXPECT_EQ(ranks(tables, {{3, 0, 8}}, {{3, 0, 8}}), (std::vector<double>{750.5, 750.5}));
  }
}

TEST_F(KgeDeviceRanking, RanksSeveralSlicesAndReloadsTheTable) {
  const std::vector<Triple> all = random_triples(200, 90, 4, 1);
  PlainTables tables(ModelKind::complex, 24, 90, 4);
  const TrueAnswers answers(all, 4);
  DeviceRanker ranker(options_of(tables), answers, *stream_);
  for (unsigned evaluation = 0; evaluation < 3; ++evaluation) {
    tables.fill_normal(evaluation);
    fill_table(ranker, tables);
    for (const std::size_t size : {20, 1, 50}) {
      const std::vector<Triple> slice(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(ranks(ranker, tables, slice), plain_ranks(tables, slice, all));
    }
    if (evaluation == 1) ranker.drop_table();
  }
}

TEST_F(KgeDeviceRanking, ReportsTableThatDoesNotFit) {
  const std::uint64_t free = gpu::info(0).free_bytes;
  const TrueAnswers answers;
  {
    // Slightly smaller than the free memory: the table fits, but not with the memory that make_table() leaves
    // to other processes.
    const auto entities = static_cast<std::int64_t>(free / 4 / 257);
    DeviceRanker ranker({ModelKind::distmult, 256, entities, 1}, answers, *stream_);
    try {
      (void)ranker.make_table();
      FAIL() << "make_table() accepted a table that is too large";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::resource_exhausted);
      const std::string what = error.what();
      EXPECT_NE(what.find("rank " + std::to_string(entities) + " entities of 256 floats on GPU 0"),
                std::string::npos)
          << what;
    }
    EXPECT_FALSE(ranker.has_table());
    EXPECT_EQ(gpu::info(0).free_bytes, free);
  }
  const std::vector<Triple> all = random_triples(5, 9, 1, 1);
  PlainTables tables(ModelKind::transe, 8, 9, 1);
  tables.fill_normal(1);
  EXPECT_EQ(ranks(tables, all, all), plain_ranks(tables, all, all)) << "the GPU remains usable";
}

TEST_F(KgeDeviceRanking, FreesItsMemory) {
  const std::vector<Triple> all = random_triples(50, 5000, 2, 1);
  PlainTables tables(ModelKind::distmult, 32, 5000, 2);
  tables.fill_normal(1);
  const TrueAnswers answers(all, 2);
  DeviceRanker ranker(options_of(tables), answers, *stream_);
  const std::uint64_t free = gpu::info(0).free_bytes;
  fill_table(ranker, tables);
  (void)ranks(ranker, tables, all);
  EXPECT_LT(gpu::info(0).free_bytes, free - 5000 * 32 * 4);
  ranker.drop_table();
  if (gpu::are_stand_ins()) {  // the allocator of a GPU may retain memory
    EXPECT_GT(gpu::info(0).free_bytes, free - (1 << 20));
  }
}

}  // namespace
}  // namespace capstan::kge
