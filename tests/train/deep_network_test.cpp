// deep_network_test.cpp -- DeepFM, DLRM and DCN-v2 compared with their definitions in double.
// Tests: src/train/deep/dcn.cpp
// Tests: src/train/deep/deepfm.cpp
// Tests: src/train/deep/dlrm.cpp
// Tests: src/train/deep/interaction.hpp
// Tests: src/train/deep/kernels.cpp
#include "train/deep/deep_network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "train/deep/parameters.hpp"
#include "train/deep/shape.hpp"
#include "train/log_loss.hpp"

namespace capstan::train {
namespace {

using Doubles = std::vector<double>;

constexpr std::size_t kInts = DeepShape::kIntegers, kCats = DeepShape::kFields;

std::vector<DeepShape> small_shapes() {
  return {{DeepModel::deepfm, 3, {5}},       {DeepModel::deepfm, 19, {}},  {DeepModel::deepfm, 2, {}},
          {DeepModel::dlrm, 3, {5, 4}, {6}}, {DeepModel::dlrm, 2, {}, {}}, {DeepModel::dcn, 2, {5}, {}, 1},
          {DeepModel::dcn, 2, {4}, {}, 3}};
}

/// Four examples, which share rows in one column and across columns.
SparseExamples field_sample(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.6F);
  std::uniform_int_distribution<std::uint32_t> slot(0, 39);
  SparseExamples batch;
  for (std::int64_t id = 0; id < 40; ++id) batch.ids.push_back(100 + id);
  for (int i = 0; i < 4; ++i) {
    batch.labels.push_back(static_cast<std::uint8_t>(i % 2));
    for (std::size_t k = 0; k < kInts; ++k) batch.dense.push_back(normal(random));
    for (std::size_t k = 0; k < kCats; ++k) {
      batch.slots.push_back(slot(random));
      batch.values.push_back(1);
    }
    batch.offsets.push_back(batch.slots.size());
  }
  for (const std::int32_t count : occurrences(batch)) {
    batch.rarity.push_back(count == 0 ? 0 : 4 / static_cast<float>(count));
  }
  return batch;
}

DeepValues random_values(const DeepNetwork& network, const SparseExamples& batch, unsigned seed) {
  DeepValues values;
  network.resize(batch, values);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  for (float& x : values.rows) x = normal(random);
  for (float& x : values.parameters) x = normal(random);
  return values;
}

/// Reads parameters one after the other.
class Cursor {
 public:
  explicit Cursor(const Doubles& values) : values_(values) {}
  double next() { return values_[at_++]; }
  Doubles next(std::size_t count) {
    Doubles read;
    for (std::size_t i = 0; i < count; ++i) read.push_back(next());
    return read;
  }
  /// Applies a layer: a row of weights per input, then the biases.
  Doubles layer(const Doubles& input, std::size_t outputs) {
    Doubles result(outputs, 0);
    for (std::size_t i = 0; i <= input.size(); ++i) {
      for (double& sum : result) sum += (i < input.size() ? input[i] : 1) * next();
    }
    return result;
  }
  /// Applies layers with ReLU after each but the last.
  Doubles network(Doubles x, const std::vector<std::int64_t>& hidden, std::size_t outputs) {
    for (const std::int64_t width : hidden) {
      x = layer(x, static_cast<std::size_t>(width));
      for (double& value : x) value = std::max(value, 0.0);
    }
    return layer(x, outputs);
  }
  bool at_end() const { return at_ == values_.size(); }

 private:
  const Doubles& values_;
  std::size_t at_ = 0;
};

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The logit by definition, pair by pair.
double logit_of(const DeepShape& shape, const Doubles& integers, const std::vector<Doubles>& rows,
                const Doubles& parameters) {
  const auto factors = static_cast<std::size_t>(shape.factors);
  Cursor cursor(parameters);
  double term = 0;
  for (const Doubles& row : rows) term += row[0];
  std::vector<Doubles> embeddings;
  Doubles features = integers;
  for (const Doubles& row : rows) {
    embeddings.emplace_back(row.end() - static_cast<std::ptrdiff_t>(factors), row.end());
    features.insert(features.end(), embeddings.back().begin(), embeddings.back().end());
  }
  if (shape.model == DeepModel::deepfm) {
    std::vector<Doubles> vectors;
    term += dot(cursor.next(kInts), integers);
    for (const double x : integers) {
      vectors.push_back(cursor.next(factors));
      for (double& value : vectors.back()) value *= x;
    }
    vectors.insert(vectors.end(), embeddings.begin(), embeddings.end());
    for (std::size_t a = 0; a < vectors.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) term += dot(vectors[a], vectors[b]);
    }
  } else if (shape.model == DeepModel::dlrm) {
    features = cursor.network(integers, shape.bottom, factors);
    embeddings.insert(embeddings.begin(), features);
    for (std::size_t a = 0; a < embeddings.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) features.push_back(dot(embeddings[a], embeddings[b]));
    }
  } else {
    const Doubles first = features;
    for (std::int64_t layer = 0; layer < shape.cross_layers; ++layer) {
      const Doubles mapped = cursor.layer(features, features.size());
      for (std::size_t i = 0; i < first.size(); ++i) features[i] += first[i] * mapped[i];
    }
  }
  const double logit = term + cursor.network(features, shape.hidden, 1)[0];
  EXPECT_TRUE(cursor.at_end());
  return logit;
}

struct Exact {
  Doubles rows, parameters;
};

std::vector<double> logits_of(const DeepShape& shape, const SparseExamples& batch, const Exact& values) {
  Doubles logits;
  const auto width = static_cast<std::ptrdiff_t>(shape.row_width());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const float* integers = batch.dense.data() + i * kInts;
    std::vector<Doubles> rows;
    for (std::size_t k = i * kCats; k < (i + 1) * kCats; ++k) {
      const auto row = values.rows.begin() + batch.slots[k] * width;
      rows.emplace_back(row, row + width);
    }
    logits.push_back(logit_of(shape, Doubles(integers, integers + kInts), rows, values.parameters));
  }
  return logits;
}

/// The rows that occur and the weights of layers have a penalty per example.
double objective(const DeepShape& shape, const SparseExamples& batch, const Exact& values,
                 const std::vector<std::uint8_t>& penalized, double scale, L2Penalty l2) {
  double sum = 0;
  const Doubles logits = logits_of(shape, batch, values);
  for (std::size_t i = 0; i < batch.size(); ++i) sum += log_loss(logits[i], batch.labels[i] != 0);
  double penalty = 0;
  for (std::size_t i = 0; i < values.rows.size(); ++i) {
    const std::size_t column = i % shape.row_width();
    if (batch.rarity[i / shape.row_width()] > 0)
      penalty += (column == 0 ? l2.weights : l2.factors) / 2 * values.rows[i] * values.rows[i];
  }
  for (std::size_t i = 0; i < penalized.size(); ++i) {
    if (penalized[i] != 0) penalty += l2.factors / 2 * values.parameters[i] * values.parameters[i];
  }
  return scale * (sum + static_cast<double>(batch.size()) * penalty);
}

TEST(DeepNetwork, LogitsMatchDefinition) {
  const SparseExamples batch = field_sample(1);
  for (const DeepShape& shape : small_shapes()) {
    SCOPED_TRACE(shape.text());
    DeepNetwork network(shape);
    const DeepValues values = random_values(network, batch, 2);
    const Exact exact{{values.rows.begin(), values.rows.end()},
                      {values.parameters.begin(), values.parameters.end()}};
    const Doubles expected = logits_of(shape, batch, exact);
    const auto logits = network.logits(batch, values);
    ASSERT_EQ(logits.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(logits[i], expected[i], 1e-6 * std::max(10.0, std::abs(expected[i]))) << i;
  }
}

TEST(DeepNetwork, GradientsMatchDefinition) {
  const SparseExamples batch = field_sample(3);
  for (const DeepShape& shape : small_shapes()) {
    for (const L2Penalty l2 : {L2Penalty{}, L2Penalty{0.3, 0.2}}) {
      SCOPED_TRACE(shape.text());
      DeepNetwork network(shape);
      const DeepValues values = random_values(network, batch, 4);
      const std::vector<std::uint8_t> penalized = network.parameters(1).penalized;
      DeepValues gradient;
      const double scale = 0.25;
      const TrainResult sums = network.gradients(batch, values, scale, l2, gradient);
      Exact exact{{values.rows.begin(), values.rows.end()},
                  {values.parameters.begin(), values.parameters.end()}};
      EXPECT_NEAR(scale * (sums.log_loss + sums.penalty),
                  objective(shape, batch, exact, penalized, scale, l2), 1e-5);
      EXPECT_EQ(sums.examples, 4);
      ASSERT_EQ(gradient.rows.size(), exact.rows.size());
      ASSERT_EQ(gradient.parameters.size(), exact.parameters.size());
      const auto difference = [&](double& x) {
        const double step = 1e-6, before = x;
        x = before + step;
        const double above = objective(shape, batch, exact, penalized, scale, l2);
        x = before - step;
        const double below = objective(shape, batch, exact, penalized, scale, l2);
        x = before;
        return (above - below) / (2 * step);
      };
      for (std::size_t i = 0; i < exact.rows.size(); ++i) {
        EXPECT_NEAR(gradient.rows[i], difference(exact.rows[i]), 2e-5) << "row " << i / shape.row_width();
      }
      const std::size_t stride = 1 + exact.parameters.size() / 200;  // dcn has thousands of parameters
      for (std::size_t i = 0; i < exact.parameters.size(); i += stride) {
        EXPECT_NEAR(gradient.parameters[i], difference(exact.parameters[i]), 2e-5) << "parameter " << i;
      }
    }
  }
}

TEST(DeepNetwork, ABatchOfAnotherSizeLeavesNothingBehind) {
  const SparseExamples batch = field_sample(5);
  SparseExamples one;
  BatchCutter(batch).cut(std::vector<std::uint32_t>{2}, one);
  for (const DeepShape& shape : small_shapes()) {
    SCOPED_TRACE(shape.text());
    DeepNetwork used(shape), fresh(shape);
    DeepValues gradient, expected;
    const DeepValues values = random_values(used, one, 6);
    used.gradients(batch, random_values(used, batch, 7), 1, {}, gradient);
    used.gradients(one, values, 1, {}, gradient);
    fresh.gradients(one, values, 1, {}, expected);
    EXPECT_EQ(gradient.rows, expected.rows);
    EXPECT_EQ(gradient.parameters, expected.parameters);
  }
}

TEST(DenseParameters, PenalizeWeightsButNotBiases) {
  DenseParameters parameters;
  parameters.add_zeros(2);
  parameters.add_layers(Layers({2, 1}), 1);
  EXPECT_THAT(parameters.penalized, testing::ElementsAre(1, 1, 1, 1, 0));
  EXPECT_EQ(parameters.initial[1], 0);
  EXPECT_NE(parameters.initial[2], 0);
  EXPECT_EQ(sum_of_squares(parameters.penalized, std::vector<float>{1, 2, 3, 4, 5}), 30);
}

TEST(DeepNetwork, InitialParametersDependOnTheSeed) {
  for (const DeepShape& shape : small_shapes()) {
    const DeepNetwork network(shape);
    EXPECT_EQ(network.parameters(1).initial, network.parameters(1).initial);
    EXPECT_NE(network.parameters(1).initial, network.parameters(2).initial);
  }
}

}  // namespace
}  // namespace capstan::train
