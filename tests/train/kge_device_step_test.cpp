// kge_device_step_test.cpp -- compares steps on a GPU with their definition; results are bitwise
// reproducible.
// Tests: src/train/kge/device_bodies.hpp
// Tests: src/train/kge/device_plan.cpp
// Tests: src/train/kge/device_models.hpp
// Tests: src/train/kge/device_softmax.hpp
#include "train/kge/device_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "tests/gpu/gpu_to_test.hpp"
#include "tests/train/plain_kge_step.hpp"

namespace capstan::kge {
namespace {

struct Problem {
  StepOptions options;
  std::vector<Triple> batch;
  std::vector<float> entities, relations;  // complete tables
};

Problem make_problem(const StepOptions& options, std::size_t batch, std::mt19937& random) {
  Problem problem{options, {}, {}, {}};
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
  };
  for (std::size_t i = 0; i < batch; ++i) {
    problem.batch.push_back({below(options.entities), below(options.relations), below(options.entities)});
  }
  std::normal_distribution<float> normal(0, 0.7F);
  problem.entities.resize(static_cast<std::size_t>(options.entities * options.dim));
  problem.relations.resize(static_cast<std::size_t>(2 * options.relations * options.dim));
  std::ranges::generate(problem.entities, [&] { return normal(random); });
  std::ranges::generate(problem.relations, [&] { return normal(random); });
  return problem;
}

class KgeDeviceStep : public gpu::OnGpu {
 protected:
  struct Result {
    Loss loss;
    std::vector<float> entity_gradients, relation_gradients;  // in the order of the ids
    bool operator==(const Result& other) const {
      return loss.sum == other.loss.sum && entity_gradients == other.entity_gradients &&
             relation_gradients == other.relation_gradients;
    }
  };

  static std::vector<float> rows_of(const std::vector<float>& table, std::span<const std::int64_t> ids,
                                    std::size_t dim) {
    std::vector<float> rows;
    for (const std::int64_t id : ids) {
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(id) * dim);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(dim));
    }
    return rows;
  }

  Result run(DeviceStep& step, DevicePlan& plan, const Problem& problem, std::uint64_t number) const {
    const auto dim = static_cast<std::size_t>(problem.options.dim);
    plan.draw(problem.batch, 5, number);
    const auto entities = to_gpu(rows_of(problem.entities, plan.batch().entity_ids(), dim));
    const auto relations = to_gpu(rows_of(problem.relations, plan.batch().relation_ids(), dim));
    const gpu::Values<float> entity_gradients(0, entities.size()), relation_gradients(0, relations.size());
    step.compute(plan,
                 {entities.data(), relations.data(), entity_gradients.data(), relation_gradients.data()});
    Result result{step.take_loss(), {}, {}};
    result.entity_gradients = to_host(entity_gradients);
    result.relation_gradients = to_host(relation_gradients);
    return result;
  }

  void check(const Problem& problem, std::uint64_t number, std::size_t max_scores = DeviceStep::kMaxScores) {
    SCOPED_TRACE(std::string(to_string(problem.options.model)) + ", dim " +
                 std::to_string(problem.options.dim) + ", " + std::to_string(problem.options.negatives) +
                 " negatives, batch " + std::to_string(problem.batch.size()) + ", n3 " +
                 std::to_string(problem.options.n3));
    DeviceStep step(problem.options, *stream_, max_scores);
    DevicePlan plan(problem.options);
    const Result got = run(step, plan, problem, number);
    PlainStep plain(problem.options, {problem.entities.begin(), problem.entities.end()},
                    {problem.relations.begin(), problem.relations.end()});
    plain.run(problem.batch, 5, number);
    EXPECT_EQ(got.loss.count, 2 * static_cast<std::int64_t>(problem.batch.size()));
    EXPECT_NEAR(got.loss.sum, plain.loss, 1e-5 * (1 + plain.loss));
    const auto dim = static_cast<std::size_t>(problem.options.dim);
    compare(got.entity_gradients, plan.batch().entity_ids(), plain.entity_gradients, dim, "entity");
    compare(got.relation_gradients, plan.batch().relation_ids(), plain.relation_gradients, dim, "relation");
    EXPECT_TRUE(run(step, plan, problem, number) == got) << "the same bits";
  }

  static void compare(const std::vector<float>& got, std::span<const std::int64_t> ids,
                      const std::vector<double>& expected, std::size_t dim, const char* what) {
    ASSERT_EQ(got.size(), ids.size() * dim);
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double value = expected[static_cast<std::size_t>(ids[i / dim]) * dim + i % dim];
      ASSERT_NEAR(got[i], value, 1e-5 * (0.1 + largest)) << what << " " << ids[i / dim] << ", " << i % dim;
    }
  }
};

constexpr ModelKind kModels[] = {ModelKind::transe, ModelKind::distmult, ModelKind::complex};

StepOptions options_of(ModelKind model, int dim, int negatives, float n3, std::int64_t entities,
                       std::int64_t relations) {
  return {.model = model,
          .dim = dim,
          .negatives = negatives,
          .n3 = model == ModelKind::transe ? 0 : n3,
          .entities = entities,
          .relations = relations};
}

TEST_F(KgeDeviceStep, AgreesWithTheDefinitionOnAHundredSmallProblems) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    const ModelKind model = kModels[i % 3];
    int dim = 1 + static_cast<int>(random() % 40);
    if (model == ModelKind::complex) dim += dim % 2;
    // Few entities, so that answers occur among the negatives, and negatives repeat.
    const auto options =
        options_of(model, dim, 1 + static_cast<int>(random() % 40), i % 2 == 0 ? 0.2F : 0,
                   2 + static_cast<std::int64_t>(random() % 20), 1 + static_cast<std::int64_t>(random() % 3));
    check(make_problem(options, 1 + random() % 30, random), static_cast<std::uint64_t>(i));
  }
}

TEST_F(KgeDeviceStep, AgreesWithTheDefinitionForFrequentRows) {
  std::mt19937 random(2);
  for (const ModelKind model : kModels) {
    // More negatives than the threads of a block; a single relation, which has many chunks.
    check(make_problem(options_of(model, 4, 260, 0.1F, 40, 1), 200, random), 1);
  }
}

TEST_F(KgeDeviceStep, AgreesWithTheDefinitionInBlocksOfQueries) {
  std::mt19937 random(3);
  for (const ModelKind model : kModels) {
    check(make_problem(options_of(model, 6, 20, 0.1F, 30, 2), 50, random), 1, 7 * 20);
    check(make_problem(options_of(model, 4, 20, 0.1F, 30, 2), 2, random), 1, 1);
  }
}

TEST_F(KgeDeviceStep, LossesOfSeveralBatchesAddUp) {
  std::mt19937 random(4);
  const Problem large = make_problem(options_of(ModelKind::complex, 8, 30, 0.1F, 50, 2), 40, random);
  Problem small = large;
  small.batch.resize(3);
  DeviceStep step(large.options, *stream_);
  DevicePlan plan(large.options);
  // Buffers grow for the second batch and are larger than needed for the next.
  const Result first = run(step, plan, small, 1), second = run(step, plan, large, 2);
  EXPECT_TRUE(run(step, plan, small, 1) == first);
  EXPECT_EQ(step.take_loss().count, 0);
  // No wait between the batches: drawing a plan waits for the previous copy.
  const auto dim = static_cast<std::size_t>(large.options.dim);
  double separate = 0;
  for (const std::uint64_t number : {1, 2}) separate += run(step, plan, small, number).loss.sum;
  const gpu::Values<float> gradients(0, large.entities.size()), others(0, large.relations.size());
  std::vector<gpu::Values<float>> rows;
  for (const std::uint64_t number : {1, 2}) {
    plan.draw(small.batch, 5, number);
    rows.push_back(to_gpu(rows_of(large.entities, plan.batch().entity_ids(), dim)));
    rows.push_back(to_gpu(rows_of(large.relations, plan.batch().relation_ids(), dim)));
  }
  for (const std::uint64_t number : {1, 2}) {
    plan.draw(small.batch, 5, number);
    const auto &entities = rows[2 * number - 2], &relations = rows[2 * number - 1];
    step.compute(plan, {entities.data(), relations.data(), gradients.data(), others.data()});
  }
  const Loss total = step.take_loss();
  EXPECT_EQ(total.count, 12);
  EXPECT_DOUBLE_EQ(total.sum, separate);
}

TEST_F(KgeDeviceStep, PropagatesNan) {
  std::mt19937 random(5);
  for (const ModelKind model : kModels) {
    Problem problem = make_problem(options_of(model, 4, 10, 0, 30, 2), 5, random);
    for (std::size_t i = 0; i < 4; ++i) {
      problem.entities[static_cast<std::size_t>(problem.batch[0].head) * 4 + i] = std::nanf("");
    }
    DeviceStep step(problem.options, *stream_);
    DevicePlan plan(problem.options);
    EXPECT_TRUE(std::isnan(run(step, plan, problem, 1).loss.sum)) << to_string(model);
  }
}

TEST_F(KgeDeviceStep, RejectsInvalidOptions) {
  EXPECT_THROW(DeviceStep(options_of(ModelKind::complex, 5, 1, 0, 9, 1), *stream_), Error);
  EXPECT_THROW(DevicePlan(options_of(ModelKind::distmult, 5, 0, 0, 9, 1)), Error);
}

}  // namespace
}  // namespace capstan::kge
