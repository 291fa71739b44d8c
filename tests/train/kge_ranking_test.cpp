// kge_ranking_test.cpp -- compares filtered ranks with brute force, with ties and NaN.
// Tests: src/train/kge/rank_metrics.cpp
// Tests: src/train/kge/true_answers.cpp
#include "train/kge/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "train/kge/kernels.hpp"

namespace capstan::kge {
namespace {

struct TestModel {
  ModelKind kind;
  int dim;
  std::int64_t entities, relations;
  std::vector<float> entity_rows, relation_rows;
};

TestModel random_model(ModelKind kind, int dim, std::int64_t entities, std::int64_t relations) {
  TestModel model{kind, dim, entities, relations, {}, {}};
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  model.entity_rows.resize(static_cast<std::size_t>(entities * dim));
  model.relation_rows.resize(static_cast<std::size_t>(2 * relations * relation_width(kind, dim)));
  std::ranges::generate(model.entity_rows, [&] { return normal(random); });
  std::ranges::generate(model.relation_rows, [&] { return normal(random); });
  return model;
}

Metrics rank(const TestModel& model, std::span<const Triple> test, std::span<const Triple> all,
             std::int64_t block, std::size_t slice) {
  const TrueAnswers true_answers(all, model.relations);
  Ranker ranker({model.kind, model.dim, model.entities, model.relations}, true_answers);
  const auto gather = [](const std::vector<float>& table, std::span<const std::int64_t> ids,
                         std::int64_t width) {
    std::vector<float> rows;
    for (const std::int64_t id : ids) {
      rows.insert(rows.end(), table.begin() + id * width, table.begin() + (id + 1) * width);
    }
    return rows;
  };
  Metrics total;
  for (std::size_t first = 0; first < test.size(); first += slice) {
    ranker.plan(test.subspan(first, std::min(slice, test.size() - first)));
    ranker.begin(gather(model.entity_rows, ranker.entity_ids(), model.dim),
                 gather(model.relation_rows, ranker.relation_ids(), relation_width(model.kind, model.dim)));
    for (std::int64_t row = 0; row < model.entities; row += block) {
      const std::int64_t count = std::min(block, model.entities - row);
      ranker.add_block(row, std::span(model.entity_rows)
                                .subspan(static_cast<std::size_t>(row * model.dim),
                                         static_cast<std::size_t>(count * model.dim)));
    }
    total.merge(ranker.finish());
  }
  return total;
}

double score(const TestModel& model, std::int64_t entity, std::int64_t relation, std::int64_t candidate) {
  const auto dim = static_cast<std::size_t>(model.dim);
  std::vector<float> query(dim);
  make_query(model.kind, &model.entity_rows[entity * dim],
             &model.relation_rows[relation * relation_width(model.kind, model.dim)], query.data(), dim);
  double sum = 0;
  const float* row = &model.entity_rows[candidate * dim];
  if (model.kind == ModelKind::rotate) {
    for (std::size_t i = 0; i < dim / 2; ++i) {
      const double re = double{query[i]} - row[i], im = double{query[dim / 2 + i]} - row[dim / 2 + i];
      sum -= std::sqrt(re * re + im * im);
    }
    return sum;
  }
  for (std::size_t i = 0; i < dim; ++i) {
    const double c = model.entity_rows[candidate * dim + i];
    sum += model.kind == ModelKind::transe ? -(query[i] - c) * (query[i] - c) : query[i] * c;
  }
  return sum;
}

/// Computes each rank from its definition. A head is the answer to a query with the reciprocal relation.
Metrics brute_force(const TestModel& model, std::span<const Triple> test, std::span<const Triple> all) {
  std::set<std::tuple<int, int, int>> facts;
  for (const auto& [h, r, t] : all) facts.insert({{h, r, t}, {t, r + int(model.relations), h}});
  Metrics metrics;
  for (const auto& [h, r, t] : test) {
    for (const auto& [e, q, a] : {std::tuple(h, r, t), std::tuple(t, r + int(model.relations), h)}) {
      double rank = 1;
      for (int c = 0; c < model.entities; ++c) {
        if (c == a || facts.count({e, q, c}) > 0) continue;
        const double other = score(model, e, q, c), correct = score(model, e, q, a);
        rank += other > correct ? 1 : other == correct ? 0.5 : 0;
      }
      metrics.add_rank(rank);
    }
  }
  return metrics;
}

void expect_same(const Metrics& a, const Metrics& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_NEAR(a.mrr(), b.mrr(), 1e-9);
  EXPECT_EQ(a.hits1_sum, b.hits1_sum);
  EXPECT_EQ(a.hits3_sum, b.hits3_sum);
  EXPECT_EQ(a.hits10_sum, b.hits10_sum);
}

struct Umls {
  std::vector<Triple> test, all;
  std::int64_t entities, relations;
};

Umls read_umls(const std::filesystem::path& directory) {
  Umls umls{};
  std::map<std::string, std::int32_t> entities, relations;
  const auto id = [](auto& ids, const std::string& name) {
    return ids.try_emplace(name, static_cast<std::int32_t>(ids.size())).first->second;
  };
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    std::ifstream file(directory / name);
    for (std::string h, r, t; file >> h >> r >> t;) {
      umls.all.push_back({id(entities, h), id(relations, r), id(entities, t)});
      if (std::string(name) == "test.txt") umls.test.push_back(umls.all.back());
    }
  }
  umls.entities = static_cast<std::int64_t>(entities.size());
  umls.relations = static_cast<std::int64_t>(relations.size());
  return umls;
}

class KgeRankingOfUmls : public testing::TestWithParam<ModelKind> {};

TEST_P(KgeRankingOfUmls, AgreesWithBruteForce) {
  const auto directory = std::filesystem::path(CAPSTAN_SOURCE_DIR) / "../shared/data/umls";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no data set at " << directory;
  const Umls umls = read_umls(directory);
  ASSERT_GT(umls.test.size(), 600U);
  TestModel model = random_model(GetParam(), 22, umls.entities, umls.relations);
  // Every fifth entity is a copy of the previous one: many exact ties.
  for (std::int64_t copy = 5; copy < model.entities; copy += 5) {
    std::copy_n(model.entity_rows.begin() + (copy - 1) * model.dim, model.dim,
                model.entity_rows.begin() + copy * model.dim);
  }
  const Metrics expected = brute_force(model, umls.test, umls.all);
  EXPECT_EQ(expected.count, 2 * static_cast<std::int64_t>(umls.test.size()));
  expect_same(rank(model, umls.test, umls.all, 1000, 1000), expected);
  expect_same(rank(model, umls.test, umls.all, 37, 100), expected);  // odd blocks, many slices
}

INSTANTIATE_TEST_SUITE_P(Models, KgeRankingOfUmls,
                         testing::Values(ModelKind::transe, ModelKind::distmult, ModelKind::complex,
                                         ModelKind::rescal, ModelKind::rotate),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(KgeRanking, DistinguishesScoresWithinRoundingError) {
  TestModel model = random_model(ModelKind::distmult, 64, 300, 1);
  // Each row is equal to the first or differs from it in the last bits of one element.
  for (std::int64_t id = 1; id < model.entities; ++id) {
    std::copy_n(model.entity_rows.begin(), 64, model.entity_rows.begin() + id * 64);
    float& value = model.entity_rows[static_cast<std::size_t>(id * 64 + id % 64)];
    for (std::int64_t bits = 0; bits < id % 3; ++bits) value = std::nextafter(value, 9.0F);
  }
  const std::vector<Triple> test{{3, 0, 8}, {100, 0, 250}, {7, 0, 64}};
  expect_same(rank(model, test, test, 300, 3), brute_force(model, test, test));
}

TEST(KgeRanking, DistinguishesModuliWithinRoundingError) {
  // As above. The first half of each row is real, so the changed elements also move imaginary parts.
  TestModel model = random_model(ModelKind::rotate, 64, 300, 1);
  for (std::int64_t id = 1; id < model.entities; ++id) {
    std::copy_n(model.entity_rows.begin(), 64, model.entity_rows.begin() + id * 64);
    float& value = model.entity_rows[static_cast<std::size_t>(id * 64 + id % 64)];
    for (std::int64_t bits = 0; bits < id % 3; ++bits) value = std::nextafter(value, 9.0F);
  }
  const std::vector<Triple> test{{3, 0, 8}, {100, 0, 250}, {7, 0, 64}};
  expect_same(rank(model, test, test, 300, 3), brute_force(model, test, test));
}

/// DistMult of dimension 1: the row of entity c is values[c], and both relation rows are 1. If values[0] is
/// 1, the score of candidate c for (0, r) is values[c].
TestModel line(std::vector<float> values) {
  const auto entities = static_cast<std::int64_t>(values.size());
  return {ModelKind::distmult, 1, entities, 1, std::move(values), {1.0F, 1.0F}};
}

double rank_of_tail(const TestModel& model, Triple test, std::vector<Triple> known) {
  // Ranker also ranks the head, so its reciprocal rank is computed here and subtracted.
  known.push_back(test);
  const double both = rank(model, std::vector{test}, known, model.entities, 1).mrr_sum;
  const double head = 1 / [&] {
    double rank = 1;
    for (std::int64_t c = 0; c < model.entities; ++c) {
      if (c == test.head) continue;
      const double other = score(model, test.tail, 1, c), correct = score(model, test.tail, 1, test.head);
      rank += std::isnan(correct) || !(other <= correct) ? 1 : other == correct ? 0.5 : 0;
    }
    return rank;
  }();
  return 1 / (both - head);
}

TEST(KgeRanking, TiesShareMeanRank) {
  const TestModel model = line({1, 5, 3, 3, 3, 2});
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 1}, {}), 1, 1e-9);
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 2}, {}), 3, 1e-9);  // tied with 3 and 4
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 5}, {}), 5, 1e-9);
}

TEST(KgeRanking, ExcludesOtherKnownAnswers) {
  const TestModel model = line({1, 5, 3, 3, 3, 2});
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 2}, {{0, 0, 1}, {0, 0, 4}}), 1.5, 1e-9);
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 5}, {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 0, 4}}), 1, 1e-9);
  EXPECT_NEAR(rank_of_tail(model, {0, 0, 5}, {{2, 0, 1}, {3, 0, 2}}), 5, 1e-9) << "answers of other queries";
}

TEST(KgeRanking, EqualRowsRankInTheMiddle) {
  TestModel model = random_model(ModelKind::complex, 16, 1500, 1);
  for (std::int64_t id = 1; id < model.entities; ++id) {
    std::copy_n(model.entity_rows.begin(), 16, model.entity_rows.begin() + id * 16);
  }
  const std::vector<Triple> test{{3, 0, 8}};
  const Metrics metrics = rank(model, test, test, 700, 1);
  EXPECT_NEAR(metrics.mrr(), 1 / 750.5, 1e-12);
}

TEST(KgeRanking, NanInModuliRanksLast) {
  TestModel model = random_model(ModelKind::rotate, 8, 5, 1);
  std::ranges::fill(model.entity_rows, std::numeric_limits<float>::quiet_NaN());
  const std::vector<Triple> test{{0, 0, 1}};
  EXPECT_NEAR(rank(model, test, test, 5, 1).mrr(), 1 / 5.0, 1e-12);
}

TEST(KgeRanking, NanModelRanksLast) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Triple> test{{0, 0, 1}};
  EXPECT_NEAR(rank(line({kNan, kNan, kNan, kNan}), test, test, 4, 1).mrr(), 1 / 4.0, 1e-12);
  EXPECT_NEAR(rank_of_tail(line({1, 5, kNan, 3}), {0, 0, 1}, {}), 2, 1e-9) << "one broken row";
}

TEST(KgeMetrics, MergeAddsUp) {
  Metrics a, b;
  a.add_rank(1);
  a.add_rank(4);
  b.add_rank(2.5);
  b.add_rank(10);
  b.add_rank(11);
  a.merge(b);
  a.merge(Metrics{});
  EXPECT_EQ(a.count, 5);
  EXPECT_DOUBLE_EQ(a.mrr(), (1 + 0.25 + 0.4 + 0.1 + 1.0 / 11) / 5);
  EXPECT_DOUBLE_EQ(a.hits1(), 0.2);
  EXPECT_DOUBLE_EQ(a.hits3(), 0.4);
  EXPECT_DOUBLE_EQ(a.hits10(), 0.8);
  EXPECT_EQ(Metrics{}.mrr(), 0);
}

TEST(KgeMetrics, TailsAreAlsoCountedSeparately) {
  Metrics a, b;
  a.add_ranks(std::vector<double>{1, 2, 5, 10});
  b.add_ranks(std::vector<double>{4, 1});
  a.merge(b);
  EXPECT_EQ(a.count, 6);
  EXPECT_EQ(a.tails_count, 3);
  EXPECT_DOUBLE_EQ(a.mrr(), (1 + 0.5 + 0.2 + 0.1 + 0.25 + 1) / 6);
  EXPECT_DOUBLE_EQ(a.tails_mrr(), (1 + 0.5 + 0.25) / 3);
  EXPECT_EQ(Metrics{}.tails_mrr(), 0);
}

TEST(KgeMetrics, MrrOfRandomGuessingIsThatOfUniformRanks) {
  EXPECT_EQ(mrr_of_random_guessing(0), 0);
  EXPECT_EQ(mrr_of_random_guessing(1), 1);
  EXPECT_DOUBLE_EQ(mrr_of_random_guessing(4), (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4) / 4);
  constexpr double kEulersConstant = 0.57721566490153286;
  EXPECT_NEAR(mrr_of_random_guessing(117'659), (std::log(117'659.0) + kEulersConstant) / 117'659, 1e-10);
  Metrics all;
  for (int rank = 1; rank <= 50; ++rank) all.add_rank(rank);
  EXPECT_DOUBLE_EQ(mrr_of_random_guessing(50), all.mrr());
}

TEST(KgeTrueAnswers, AreSortedUniqueAndBidirectional) {
  const std::vector<Triple> triples{{4, 1, 9}, {4, 1, 2}, {4, 1, 9}, {5, 1, 2}, {4, 0, 7}};
  const TrueAnswers answers(triples, /*relations=*/2);
  const auto of = [&](int entity, int relation) {
    const auto found = answers.of(entity, relation);
    return std::vector(found.begin(), found.end());
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(of(4, 1), (Ids{2, 9}));
  EXPECT_EQ(of(4, 0), (Ids{7}));
  EXPECT_EQ(of(2, 3), (Ids{4, 5}));
  EXPECT_EQ(of(9, 3), (Ids{4}));
  EXPECT_EQ(of(9, 1), Ids{});
  EXPECT_EQ(of(100, 0), Ids{});
  EXPECT_TRUE(TrueAnswers().of(0, 0).empty());
}

}  // namespace
}  // namespace capstan::kge
