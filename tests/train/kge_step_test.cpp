// kge_step_test.cpp -- rows of a plan, and its gradients compared with finite differences of the loss.
#include "train/kge/step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "capstan/error.hpp"
#include "train/counter_rng.hpp"

namespace capstan::kge {
namespace {

constexpr std::int64_t kKgeStepEntities = 9;
constexpr std::int64_t kRelations = 2;

const std::vector<Triple> kBatch{{0, 0, 1}, {1, 1, 2}, {5, 0, 1}, {3, 1, 3}, {0, 0, 1}};

StepOptions small(ModelKind model, int dim, float n3) {
  return {.model = model,
          .dim = dim,
          .negatives = 7,
          .n3 = n3,
          .entities = kKgeStepEntities,
          .relations = kRelations};
}

std::vector<float> random_rows(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.7F);
  std::vector<float> rows(size);
  std::ranges::generate(rows, [&] { return normal(random); });
  return rows;
}

/// The objective by definition, in double, one score at a time.
class Objective {
 public:
  Objective(const Step& step, std::vector<std::int64_t> negatives)
      : step_(step), negatives_(std::move(negatives)) {}

  double loss(const std::vector<double>& entities, const std::vector<double>& relations) const {
    double sum = 0;
    for_each_query([&](std::int64_t source, std::int64_t relation, std::int64_t answer) {
      const auto query =
          make_query(row(entities, step_.entity_ids(), source), relation_row(relations, relation));
      const double positive = score(query, row(entities, step_.entity_ids(), answer));
      if (step_.options().margin > 0) {
        sum += self_adversarial(query, entities, answer, positive);
        return;
      }
      double total = std::exp(positive);
      for (const std::int64_t negative : negatives_) {
        if (negative == answer) continue;
        total += std::exp(score(query, row(entities, step_.entity_ids(), negative))) *
                 (kKgeStepEntities - 1) / static_cast<double>(negatives_.size());
      }
      sum += std::log(total) - positive;
    });
    return sum;
  }

  /// The weights of the negatives are those of the first call: they count as constants.
  double self_adversarial(const std::vector<double>& query, const std::vector<double>& entities,
                          std::int64_t answer, double positive) const {
    std::vector<double> scores, weights;
    for (const std::int64_t negative : negatives_) {
      if (negative != answer) scores.push_back(score(query, row(entities, step_.entity_ids(), negative)));
    }
    double total = 0;
    for (const double s : scores) {
      weights.push_back(std::exp(s * double{kAdversarialTemperature}));
      total += weights.back();
    }
    for (double& weight : weights) weight /= total;
    if (queries_ < kept_weights_.size())
      weights = kept_weights_[queries_];
    else
      kept_weights_.push_back(weights);
    queries_ = (queries_ + 1) % (2 * kBatch.size());
    const double margin = double{step_.options().margin};
    double loss = std::log1p(std::exp(-margin - positive));
    for (std::size_t i = 0; i < scores.size(); ++i)
      loss += weights[i] * std::log1p(std::exp(margin + scores[i]));
    return loss;
  }

  double penalty(const std::vector<double>& entities, const std::vector<double>& relations) const {
    double sum = 0;
    for_each_query([&](std::int64_t source, std::int64_t relation, std::int64_t answer) {
      sum += cubes(row(entities, step_.entity_ids(), source)) +
             cubes(row(entities, step_.entity_ids(), answer)) + cubes(relation_row(relations, relation));
    });
    return double{step_.options().n3} * sum;
  }

 private:
  using Row = std::vector<double>;

  template <class Body>
  void for_each_query(const Body& body) const {
    for (const Triple& triple : kBatch) {
      body(triple.head, triple.relation, triple.tail);
      body(triple.tail, triple.relation + kRelations, triple.head);
    }
  }

  Row row(const std::vector<double>& rows, std::span<const std::int64_t> ids, std::int64_t id) const {
    const auto position = std::ranges::find(ids, id) - ids.begin();
    const auto begin = rows.begin() + position * step_.options().dim;
    return {begin, begin + step_.options().dim};
  }
  Row relation_row(const std::vector<double>& rows, std::int64_t id) const {
    const auto ids = step_.relation_ids();
    const auto position = std::ranges::find(ids, id) - ids.begin();
    const std::int64_t width = relation_width(step_.options().model, step_.options().dim);
    const auto begin = rows.begin() + position * width;
    return {begin, begin + width};
  }

  Row make_query(const Row& entity, const Row& relation) const {
    Row query(entity.size());
    const std::size_t half = entity.size() / 2;
    for (std::size_t i = 0; i < entity.size(); ++i) {
      switch (step_.options().model) {
        case ModelKind::transe:
          query[i] = entity[i] + relation[i];
          break;
        case ModelKind::distmult:
          query[i] = entity[i] * relation[i];
          break;
        case ModelKind::complex:
          query[i] = i < half ? entity[i] * relation[i] - entity[i + half] * relation[i + half]
                              : entity[i - half] * relation[i] + entity[i] * relation[i - half];
          break;
        case ModelKind::rescal:
          for (std::size_t j = 0; j < entity.size(); ++j)
            query[i] += entity[j] * relation[j * entity.size() + i];
          break;
        case ModelKind::rotate: {
          const double angle = double{kRotationScale} * relation[i % half];
          query[i] = i < half ? entity[i] * std::cos(angle) - entity[i + half] * std::sin(angle)
                              : entity[i - half] * std::sin(angle) + entity[i] * std::cos(angle);
          break;
        }
      }
    }
    return query;
  }

  double score(const Row& query, const Row& candidate) const {
    double sum = 0;
    if (step_.options().model == ModelKind::rotate) {
      const std::size_t half = query.size() / 2;
      for (std::size_t i = 0; i < half; ++i)
        sum -= std::hypot(query[i] - candidate[i], query[half + i] - candidate[half + i]);
      return sum;
    }
    const bool distance = step_.options().model == ModelKind::transe;
    for (std::size_t i = 0; i < query.size(); ++i) {
      sum += distance ? std::pow(query[i] - candidate[i], 2) : query[i] * candidate[i];
    }
    return distance ? -double{kTransETemperature} * std::sqrt(sum) : sum;
  }

  double cubes(const Row& row) const {
    double sum = 0;
    if (step_.options().model == ModelKind::complex) {
      const std::size_t half = row.size() / 2;
      for (std::size_t i = 0; i < half; ++i) sum += std::pow(std::hypot(row[i], row[half + i]), 3);
    } else {
      for (const double value : row) sum += std::pow(std::abs(value), 3);
    }
    return sum;
  }

  const Step& step_;
  std::vector<std::int64_t> negatives_;
  mutable std::size_t queries_ = 0;  // of the running call
  mutable std::vector<std::vector<double>> kept_weights_;
};

std::vector<std::int64_t> negatives_of(const StepOptions& options, std::uint64_t seed, std::uint64_t number) {
  const train::CounterRng random(seed, number);
  std::vector<std::int64_t> negatives;
  for (int j = 0; j < options.negatives; ++j) {
    negatives.push_back(
        static_cast<std::int64_t>(random.below(kKgeStepEntities, static_cast<std::uint64_t>(j))));
  }
  return negatives;
}

struct Case {
  ModelKind model;
  int dim;  // odd sizes end in the middle of a SIMD vector
  float n3;
  float margin = 0;
};

class KgeGradients : public testing::TestWithParam<Case> {};

TEST_P(KgeGradients, AgreeWithFiniteDifferences) {
  StepOptions options = small(GetParam().model, GetParam().dim, GetParam().n3);
  options.margin = GetParam().margin;
  const auto dim = static_cast<std::size_t>(options.dim);
  Step step(options);
  for (std::uint64_t number = 0; number < 3; ++number) {
    step.plan(kBatch, /*seed=*/5, number);
    const auto entities = random_rows(step.entity_ids().size() * dim, 1);
    const auto width = static_cast<std::size_t>(relation_width(options.model, options.dim));
    const auto relations = random_rows(step.relation_ids().size() * width, 2);
    const Loss loss = step.compute(entities, relations);

    const Objective objective(step, negatives_of(options, 5, number));
    std::vector<double> e(entities.begin(), entities.end());
    std::vector<double> r(relations.begin(), relations.end());
    EXPECT_EQ(loss.count, 2 * static_cast<std::int64_t>(kBatch.size()));
    EXPECT_NEAR(loss.sum, objective.loss(e, r), 1e-4 * loss.sum);

    const auto check = [&](std::vector<double>& values, std::span<const float> gradients,
                           std::size_t row_size, const char* name) {
      ASSERT_EQ(gradients.size(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        constexpr double kStep = 1e-5;
        const double original = values[i];
        const auto total = [&](double value) {
          values[i] = value;
          return objective.loss(e, r) + objective.penalty(e, r);
        };
        const double slope = (total(original + kStep) - total(original - kStep)) / (2 * kStep);
        values[i] = original;
        EXPECT_NEAR(gradients[i], slope, 2e-4 * (1 + std::abs(slope)))
            << name << " " << i / row_size << ", " << i % row_size;
      }
    };
    check(e, step.entity_gradients(), dim, "entity row");
    check(r, step.relation_gradients(), width, "relation row");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KgeGradients,
                         testing::Values(Case{ModelKind::transe, 3, 0}, Case{ModelKind::transe, 40, 0},
                                         Case{ModelKind::distmult, 5, 0}, Case{ModelKind::distmult, 19, 0.2F},
                                         Case{ModelKind::complex, 2, 0.3F}, Case{ModelKind::complex, 6, 0},
                                         Case{ModelKind::complex, 70, 0.1F}, Case{ModelKind::rescal, 3, 0},
                                         Case{ModelKind::rescal, 9, 0.2F}, Case{ModelKind::rotate, 2, 0},
                                         Case{ModelKind::rotate, 38, 0}, Case{ModelKind::rotate, 4, 0, 2},
                                         Case{ModelKind::rotate, 38, 0, 6}),
                         [](const auto& test) {
                           return std::string(to_string(test.param.model)) + std::to_string(test.param.dim) +
                                  (test.param.margin > 0 ? "_margin" : "");
                         });

TEST(KgeStep, ListsEachNeededRowOnce) {
  Step step(small(ModelKind::distmult, 4, 0));
  step.plan(kBatch, 5, 3);
  std::set<std::int64_t> entities, relations;
  for (const Triple& triple : kBatch) {
    entities.insert({triple.head, triple.tail});
    relations.insert({triple.relation, triple.relation + kRelations});
  }
  for (const std::int64_t negative : negatives_of(step.options(), 5, 3)) entities.insert(negative);
  EXPECT_THAT(step.entity_ids(), testing::ElementsAreArray(entities));
  EXPECT_THAT(step.relation_ids(), testing::ElementsAreArray(relations));
}

TEST(KgeStep, DependsOnlyOnSeedAndBatchNumber) {
  const StepOptions options{
      .model = ModelKind::complex, .dim = 8, .negatives = 64, .entities = 1'000'000, .relations = kRelations};
  const auto ids = [&](std::uint64_t seed, std::uint64_t number, Step& step) {
    step.plan(kBatch, seed, number);
    return std::vector(step.entity_ids().begin(), step.entity_ids().end());
  };
  Step one(options), other(options);
  const auto first = ids(1, 10, one);
  ids(1, 11, other);
  EXPECT_EQ(ids(1, 10, other), first) << "independent of earlier plans";
  EXPECT_NE(ids(1, 11, one), first);
  EXPECT_NE(ids(2, 10, one), first);
}

TEST(KgeStep, LargeBatchIsTheSumOfItsParts) {
  // Longer than a block of queries, so that sums of several blocks are combined. The negatives are those of
  // one batch number.
  StepOptions options{.model = ModelKind::complex,
                      .dim = 32,
                      .negatives = 50,
                      .n3 = 0.1F,
                      .entities = 200,
                      .relations = kRelations};
  std::mt19937 random(3);
  std::vector<Triple> batch(700);
  for (Triple& triple : batch) {
    triple = {static_cast<std::int32_t>(random() % 200), static_cast<std::int32_t>(random() % 2),
              static_cast<std::int32_t>(random() % 200)};
  }
  const auto entities = random_rows(200 * 32, 1);
  const auto relations = random_rows(4 * 32, 2);
  const auto add = [&](std::span<const Triple> part, std::vector<double>& gradients) {
    Step step(options);
    step.plan(part, 1, 1);
    std::vector<float> rows, relation_rows;
    for (const auto id : step.entity_ids())
      rows.insert(rows.end(), &entities[id * 32], &entities[id * 32] + 32);
    for (const auto id : step.relation_ids()) {
      relation_rows.insert(relation_rows.end(), &relations[id * 32], &relations[id * 32] + 32);
    }
    const Loss loss = step.compute(rows, relation_rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      gradients[static_cast<std::size_t>(step.entity_ids()[i / 32]) * 32 + i % 32] +=
          step.entity_gradients()[i];
    }
    return loss.sum;
  };
  std::vector<double> complete(entities.size()), parts(entities.size());
  const double complete_loss = add(batch, complete);
  double parts_loss = 0;
  for (std::size_t first = 0; first < batch.size(); first += 70) {
    parts_loss += add(std::span(batch).subspan(first, 70), parts);
  }
  EXPECT_NEAR(complete_loss, parts_loss, 1e-5 * parts_loss);
  for (std::size_t i = 0; i < complete.size(); ++i) ASSERT_NEAR(complete[i], parts[i], 1e-3) << i;
}

TEST(KgeStep, RotationOntoTheAnswerHasFiniteGradients) {
  // Every modulus is 0, whose derivative is undefined.
  const StepOptions options{
      .model = ModelKind::rotate, .dim = 6, .negatives = 3, .n3 = 0, .entities = 4, .relations = kRelations};
  Step step(options);
  const std::vector<Triple> batch{{0, 0, 1}};
  step.plan(batch, 5, 0);
  const std::vector<float> entities(step.entity_ids().size() * 6, 0.5F);
  const std::vector<float> relations(step.relation_ids().size() * 3);
  const Loss loss = step.compute(entities, relations);
  EXPECT_TRUE(std::isfinite(loss.sum));
  for (const float gradient : step.entity_gradients()) EXPECT_EQ(gradient, 0);
  for (const float gradient : step.relation_gradients()) EXPECT_EQ(gradient, 0);
}

TEST(KgeStep, RejectsInvalidOptions) {
  const auto rejected = [](StepOptions options) {
    try {
      Step step(options);
    } catch (const Error& error) {
      return error.code() == Code::invalid_argument;
    }
    return false;
  };
  const StepOptions good = small(ModelKind::complex, 4, 0.1F);
  EXPECT_FALSE(rejected(good));
  for (const auto change :
       {+[](StepOptions& o) { o.dim = 0; }, +[](StepOptions& o) { o.dim = 5; },
        +[](StepOptions& o) { o.dim = -4; }, +[](StepOptions& o) { o.negatives = 0; },
        +[](StepOptions& o) { o.n3 = -1; }, +[](StepOptions& o) { o.n3 = std::nanf(""); },
        +[](StepOptions& o) { o.entities = 1; }, +[](StepOptions& o) { o.relations = 0; },
        +[](StepOptions& o) { o.model = ModelKind::transe; },
        +[](StepOptions& o) { o.model = ModelKind::rotate; }, +[](StepOptions& o) { o.margin = 6; }}) {
    StepOptions options = good;
    change(options);
    EXPECT_TRUE(rejected(options));
  }
}

}  // namespace
}  // namespace capstan::kge
