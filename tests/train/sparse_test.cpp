// sparse_test.cpp -- reading of shares of the input files, cutting of batches, and the factorization machine.
// Its gradients are compared with difference quotients of the objective.
// Tests: src/train/sparse/kernels.cpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "io/temporary_directory.hpp"
#include "support/expect_error.hpp"
#include "train/log_loss.hpp"
#include "train/sparse/columns.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/factorization_machine.hpp"
#include "train/sparse/l2_penalty.hpp"

namespace capstan::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const SparseFormat kLibsvm{"libsvm", 0, 20};

/// Four examples; the second has no features.
SparseExamples sample() {
  return {.labels = {1, 0, 0, 1},
          .offsets = {0, 3, 3, 5, 8},
          .slots = {0, 1, 2, 1, 3, 0, 2, 3},
          .values = {1, -0.5F, 2, 1.5F, 1, 0.25F, 1, -1},
          .ids = {2, 5, 6, 9},
          .rarity = {2, 2, 2, 2}};  // 4 examples / 2 occurrences of each feature
}

FmRows random_rows(const FactorizationMachine& machine, const SparseExamples& batch, unsigned seed) {
  FmRows rows;
  machine.resize(batch, rows);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.6F);
  for (float& x : rows.weights) x = normal(random);
  for (float& x : rows.factors) x = normal(random);
  return rows;
}

/// The objective by definition, pair by pair, in double.
double objective(const SparseExamples& batch, const FmOptions& options, const L2Penalty& l2,
                 const std::vector<double>& w, const std::vector<double>& v, double scale) {
  const auto factors = static_cast<std::size_t>(options.factors);
  double sum = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    double logit = options.bias ? w.back() : 0;
    for (auto k = batch.offsets[i]; k < batch.offsets[i + 1]; ++k) {
      logit += w[batch.slots[k]] * static_cast<double>(batch.values[k]);
      for (auto m = k + 1; m < batch.offsets[i + 1]; ++m) {
        double product = 0;
        for (std::size_t f = 0; f < factors; ++f) {
          product += v[batch.slots[k] * factors + f] * v[batch.slots[m] * factors + f];
        }
        logit += product * static_cast<double>(batch.values[k] * batch.values[m]);
      }
    }
    sum += log_loss(logit, batch.labels[i] != 0);
  }
  double penalty = 0;  // of all rows, without the bias
  for (std::size_t slot = 0; slot < batch.ids.size(); ++slot) penalty += l2.weights / 2 * w[slot] * w[slot];
  for (const double x : v) penalty += l2.factors / 2 * x * x;
  return scale * (sum + static_cast<double>(batch.size()) * penalty);
}

TEST(FactorizationMachine, GradientsMatchDefinition) {
  const SparseExamples batch = sample();
  struct Case {
    FmOptions options;
    L2Penalty l2;
  };
  for (const Case& one : {Case{{0, true}, {}}, Case{{0, false}, {0.3, 0.3}}, Case{{3, true}, {}},
                          Case{{3, true}, {0.2, 0.2}}, Case{{3, true}, {0.2, 0.7}}, Case{{3, true}, {0, 0.4}},
                          Case{{3, true}, {0.4, 0}}, Case{{8, true}, {}}, Case{{19, true}, {0.2, 0.2}}}) {
    const FmOptions options = one.options;  // clang 14 does not capture structured bindings
    const L2Penalty l2 = one.l2;
    FactorizationMachine machine(options);
    const FmRows rows = random_rows(machine, batch, 3);
    FmRows gradients;
    const double scale = 0.25;
    const FmLoss loss = machine.gradients(batch, rows, l2, scale, gradients);
    std::vector<double> w(rows.weights.begin(), rows.weights.end()),
        v(rows.factors.begin(), rows.factors.end());
    EXPECT_NEAR(scale * (loss.log_loss + loss.penalty), objective(batch, options, l2, w, v, scale), 1e-12);
    ASSERT_EQ(gradients.weights.size(), w.size());
    ASSERT_EQ(gradients.factors.size(), v.size());
    const auto difference = [&](double& x) {
      const double step = 1e-5, before = x;
      x = before + step;
      const double above = objective(batch, options, l2, w, v, scale);
      x = before - step;
      const double below = objective(batch, options, l2, w, v, scale);
      x = before;
      return (above - below) / (2 * step);
    };
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(gradients.weights[i], difference(w[i]), 1e-6) << i;
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(gradients.factors[i], difference(v[i]), 1e-6) << i;
  }
}

TEST(FactorizationMachine, UnitValuesMatchValuesOfOne) {
  SparseExamples batch = sample();
  std::fill(batch.values.begin(), batch.values.end(), 1.0F);
  for (const std::int64_t factors : {0, 8, 11}) {
    FactorizationMachine machine({.factors = factors, .bias = true});
    const FmRows rows = random_rows(machine, batch, 7);
    FmRows expected, found;
    SparseExamples unit = batch;
    unit.unit_values = true;
    unit.values.clear();
    const double loss = machine.gradients(batch, rows, {}, 1, expected).log_loss;
    EXPECT_DOUBLE_EQ(machine.gradients(unit, rows, {}, 1, found).log_loss, loss);
    EXPECT_EQ(found.weights, expected.weights);
    EXPECT_EQ(found.factors, expected.factors);
  }
}

TEST(FactorizationMachine, AllZeroFactorsMatchLogisticRegression) {
  const SparseExamples batch = sample();
  FactorizationMachine linear({.factors = 0, .bias = true}), machine({.factors = 2, .bias = true});
  const L2Penalty l2{.weights = 0.1, .factors = 0.1};
  const FmRows linear_rows = random_rows(linear, batch, 5);
  FmRows machine_rows = linear_rows, linear_gradients, machine_gradients;
  machine_rows.factors.assign(batch.ids.size() * 2, 0);
  std::vector<double> linear_logits, machine_logits;
  linear.logits(batch, linear_rows, linear_logits);
  machine.logits(batch, machine_rows, machine_logits);
  EXPECT_EQ(linear_logits, machine_logits);
  linear.gradients(batch, linear_rows, l2, 1, linear_gradients);
  machine.gradients(batch, machine_rows, l2, 1, machine_gradients);
  EXPECT_EQ(linear_gradients.weights, machine_gradients.weights);
  for (const float g : machine_gradients.factors) EXPECT_EQ(g, 0);
}

/// Returns one example for each pair of features. Its label is 1 if both ids are in the same half.
SparseExamples pairs_of(std::uint32_t features) {
  SparseExamples examples;
  for (std::uint32_t id = 0; id < features; ++id) examples.ids.push_back(id);
  for (std::uint32_t a = 0; a < features; ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      examples.labels.push_back((a < features / 2) == (b < features / 2) ? 1 : 0);
      examples.slots.insert(examples.slots.end(), {a, b});
      examples.values.insert(examples.values.end(), {1, 1});
      examples.offsets.push_back(examples.slots.size());
    }
  }
  return examples;
}

/// Mean log-loss after gradient descent.
double fit(const SparseExamples& examples, std::int64_t factors) {
  FactorizationMachine machine({.factors = factors, .bias = true});
  FmRows rows = random_rows(machine, examples, 1), gradients;
  const double scale = 1 / static_cast<double>(examples.size());
  double loss = 0;
  for (int step = 0; step < 3000; ++step) {
    loss = scale * machine.gradients(examples, rows, {}, scale, gradients).log_loss;
    for (std::size_t i = 0; i < rows.weights.size(); ++i) rows.weights[i] -= 2 * gradients.weights[i];
    for (std::size_t i = 0; i < rows.factors.size(); ++i) rows.factors[i] -= 2 * gradients.factors[i];
  }
  return loss;
}

TEST(FactorizationMachine, FitsPairsThatLogisticRegressionCannot) {
  const SparseExamples examples = pairs_of(12);  // 30 of 66 are positive
  const double share = 30.0 / 66;
  const double constant = -share * std::log(share) - (1 - share) * std::log(1 - share);
  EXPECT_NEAR(fit(examples, 0), constant, 1e-3);  // by symmetry, weights alone cannot help
  EXPECT_LT(fit(examples, 2), 0.02);
}

TEST(L2Options, DefaultsDivideConstantsByTheNumberOfExamples) {
  const L2Penalty few = L2Options{}.for_examples(1000), many = L2Options{}.for_examples(4000);
  EXPECT_GT(few.weights, 0);
  EXPECT_GT(few.factors, few.weights);
  EXPECT_DOUBLE_EQ(few.weights, 4 * many.weights);
  EXPECT_DOUBLE_EQ(few.factors, 4 * many.factors);
}

TEST(L2Options, FactorsHaveThePenaltyOfWeightsUnlessSet) {
  const L2Penalty same = L2Options{.weights = 0.5}.for_examples(1000);
  EXPECT_EQ(same.weights, 0.5);
  EXPECT_EQ(same.factors, 0.5);
  const L2Penalty other = L2Options{.weights = 0.5, .factors = 0.25}.for_examples(1000);
  EXPECT_EQ(other.weights, 0.5);
  EXPECT_EQ(other.factors, 0.25);
  EXPECT_FALSE(L2Options{.weights = 0.0}.for_examples(1000).any()) << "an explicit 0 disables both";
  const L2Penalty factors_only = L2Options{.factors = 0.25}.for_examples(1000);
  EXPECT_EQ(factors_only.factors, 0.25);
  EXPECT_EQ(factors_only.weights, L2Options{}.for_examples(1000).weights);
}

TEST(BucketOf, SeparatesSmallIntegersAndPowersOfTheSquareRootOfTwo) {
  const std::vector<std::int64_t> first_of_bucket{-6, -4, -3, -2, -1, 0,  1,  2,  3,
                                                  4,  6,  8,  12, 16, 23, 32, 46, 64};
  std::set<std::int64_t> buckets;
  for (const std::int64_t x : first_of_bucket) buckets.insert(bucket_of(x));
  EXPECT_EQ(buckets.size(), first_of_bucket.size());
  EXPECT_EQ(bucket_of(5), bucket_of(4));
  EXPECT_EQ(bucket_of(22), bucket_of(16));
  EXPECT_EQ(bucket_of(45), bucket_of(32));
  EXPECT_EQ(bucket_of(-5), -bucket_of(5));
  EXPECT_NE(bucket_of(std::numeric_limits<std::int64_t>::max()),
            bucket_of(std::numeric_limits<std::int64_t>::min()));
}

TEST(BatchCutter, KeepsDenseInputs) {
  SparseExamples all = sample();
  all.dense = {1, 2, 3, 4, 5, 6, 7, 8};
  SparseExamples batch;
  BatchCutter cutter(all);
  for (int again = 0; again < 2; ++again) {
    cutter.cut(std::vector<std::uint32_t>{3, 1}, batch);
    EXPECT_THAT(batch.dense, ElementsAre(7, 8, 3, 4));
  }
}

TEST(BatchCutter, OmitsUnitValues) {
  SparseExamples all = sample();
  all.unit_values = true;
  SparseExamples batch;
  BatchCutter(all).cut(std::vector<std::uint32_t>{3, 1}, batch);
  EXPECT_TRUE(batch.unit_values);
  EXPECT_THAT(batch.values, testing::IsEmpty());
  EXPECT_THAT(batch.slots, ElementsAre(0, 1, 2));
}

TEST(BatchCutter, KeepsOnlyRowsOfTheBatch) {
  const SparseExamples all = sample();
  BatchCutter cutter(all);
  SparseExamples batch;
  const std::vector<std::uint32_t> chosen{3, 1}, other{2};
  for (int again = 0; again < 2; ++again) {
    cutter.cut(chosen, batch);
    EXPECT_THAT(batch.labels, ElementsAre(1, 0));
    EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 3));
    EXPECT_THAT(batch.ids, ElementsAre(2, 6, 9));
    EXPECT_THAT(batch.slots, ElementsAre(0, 1, 2));
    EXPECT_THAT(batch.values, ElementsAre(0.25F, 1, -1));
    EXPECT_EQ(batch.rarity.size(), 3u);
    EXPECT_FALSE(batch.unit_values);
    cutter.cut(other, batch);
    EXPECT_THAT(batch.ids, ElementsAre(5, 9));
    EXPECT_THAT(batch.values, ElementsAre(1.5F, 1));
  }
  EXPECT_THAT(occurrences(all), ElementsAre(2, 2, 2, 2));
}

class ReadShare : public testing::Test {
 protected:
  io::TemporaryDirectory directory_;
};

TEST_F(ReadShare, ReadsLibsvmFiles) {
  const auto a = directory_.write("a", "+1 3:1 7:2\n-1 1:1\n"),
             b = directory_.write("b", "1 7:0.5\n0\n-1 9:4 1:3\n");
  const SparseFile odd = read_share({a, b}, kLibsvm, 1, 2);
  EXPECT_EQ(odd.total, 5);
  EXPECT_EQ(odd.rows, 10);
  EXPECT_THAT(odd.examples.labels, ElementsAre(0, 0));
  EXPECT_THAT(odd.examples.ids, ElementsAre(1));
  const SparseFile even = read_share({a, b}, kLibsvm, 0, 2);
  EXPECT_EQ(even.rows, 10);
  EXPECT_THAT(even.examples.labels, ElementsAre(1, 1, 0));
  EXPECT_THAT(even.examples.ids, ElementsAre(1, 3, 7, 9));  // ascending, independent of the order in the file
  EXPECT_THAT(even.examples.slots, ElementsAre(1, 2, 2, 3, 0));
  EXPECT_THAT(even.examples.values, ElementsAre(1, 2, 0.5F, 4, 3));
  EXPECT_FALSE(even.examples.unit_values);
  EXPECT_EQ(read_share({a}, kLibsvm, 5, 6).examples.size(), 0u);
}

/// A line with an integer in its first column, and a category in two columns.
std::string criteo_line(int label, const std::string& first, const std::string& category) {
  std::string line = std::to_string(label) + "\t" + first;
  for (int i = 1; i < 13; ++i) line += "\t";
  for (int i = 0; i < 26; ++i) line += "\t" + (i < 2 ? category : "");
  return line + "\n";
}

std::vector<std::int64_t> rows_of(const SparseExamples& examples, std::size_t example) {
  std::vector<std::int64_t> rows;
  for (auto k = examples.offsets[example]; k < examples.offsets[example + 1]; ++k) {
    rows.push_back(examples.ids[examples.slots[k]]);
  }
  return rows;
}

TEST_F(ReadShare, ReadsCriteoFiles) {
  const auto day = directory_.write("day", criteo_line(1, "-3", "0a") + criteo_line(0, "", "0a") +
                                               criteo_line(0, "4", "") + criteo_line(0, "5", ""));
  const SparseFormat format{"criteo", 0, 20};
  const SparseFile file = read_share({day}, format, 0, 1);
  EXPECT_EQ(file.rows, 1 << 20);
  EXPECT_EQ(file.total, 4);
  const SparseExamples& examples = file.examples;
  EXPECT_THAT(examples.labels, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(examples.offsets, ElementsAre(0, 15, 30, 43, 56)) << "13 integers, of which 12 are missing";
  EXPECT_THAT(examples.values, testing::Each(1));
  EXPECT_TRUE(examples.unit_values);
  const auto negative = rows_of(examples, 0), missing = rows_of(examples, 1), four = rows_of(examples, 2),
             five = rows_of(examples, 3);
  EXPECT_EQ(std::set(missing.begin(), missing.end()).size(), missing.size())
      << "a value is a separate feature in each column";
  EXPECT_EQ(std::vector(negative.begin() + 1, negative.end()),
            std::vector(missing.begin() + 1, missing.end()))
      << "a value is the same feature in each line";
  EXPECT_EQ(std::set({negative[0], missing[0], four[0]}).size(), 3u);
  EXPECT_EQ(four[0], five[0]) << "one bucket";
}

TEST_F(ReadShare, ReadsCsvFiles) {
  const auto a = directory_.write("a.csv", "id,click,site,hour\n1,1,x,14\n2,0,,\n"),
             b = directory_.write("b.csv", "hour,site,click\n15,x,-1\n14,y,1\n");
  const SparseFormat format{.format = "csv",
                            .hash_bits = 20,
                            .schema = {.label = "click", .categories = {"site"}, .integers = {"hour"}}};
  const SparseFile file = read_share({a, b}, format, 0, 1);
  EXPECT_EQ(file.rows, 1 << 20);
  EXPECT_EQ(file.total, 4);
  const SparseExamples& examples = file.examples;
  EXPECT_THAT(examples.labels, ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(examples.offsets, ElementsAre(0, 2, 3, 5, 7)) << "a missing category is no feature";
  const auto first = rows_of(examples, 0), missing = rows_of(examples, 1), third = rows_of(examples, 2),
             fourth = rows_of(examples, 3);
  EXPECT_EQ(first, third) << "the order of the columns does not matter, and 14 and 15 share a bucket";
  EXPECT_EQ(fourth[1], first[1]);
  EXPECT_EQ(std::set({first[0], first[1], fourth[0], missing[0]}).size(), 4u);
  EXPECT_EQ(read_share({a, b}, format, 1, 2).examples.size(), 2u);
}

TEST_F(ReadShare, ReadsCriteoFilesWithFields) {
  const auto day = directory_.write("day", criteo_line(1, "-3", "0a") + criteo_line(0, "", "0a"));
  for (const bool dynamic : {false, true}) {
    const SparseFormat format{.format = "criteo", .hash_bits = 20, .dynamic = dynamic, .fields = true};
    const SparseExamples examples = read_share({day}, format, 0, 1).examples;
    ASSERT_EQ(examples.dense.size(), 2u * 13);
    EXPECT_FLOAT_EQ(examples.dense[0], -std::log(4.0F));
    for (std::size_t i = 1; i < examples.dense.size(); ++i) EXPECT_EQ(examples.dense[i], 0) << i;
    EXPECT_THAT(examples.offsets, ElementsAre(0, 39, 78));
    EXPECT_EQ(examples.ids.size(), 40u) << "the missing value of each column has its own row";
    EXPECT_NE(examples.slots[0], examples.slots[39]);
    for (std::size_t i = 1; i < 39; ++i) EXPECT_EQ(examples.slots[i], examples.slots[39 + i]) << i;
  }
}

TEST_F(ReadShare, ReportsInvalidFiles) {
  const auto file = directory_.write("w", "1 1:1\n3 1:1\n");
  const std::string name = file.string();
  expect_error(Code::invalid_argument,
               name + ":2: expected 0 or 1, or -1 or +1, as the label, found \"3\" (--format libsvm)",
               [&] { read_share({file}, kLibsvm, 0, 2); });
  const auto wide = directory_.write("wide", "1 8:1\n");
  expect_error(Code::invalid_argument,
               wide.string() + ":1: the id is 8; with 8 features the last is 7 (--format libsvm)", [&] {
                 read_share({wide}, {"libsvm", 8, 20}, 0, 1);
               });
  const auto empty = directory_.write("empty", "\n");
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { read_share({empty}, kLibsvm, 0, 1); }),
              HasSubstr(empty.string()));
  EXPECT_THROW(read_share({directory_.path() / "missing"}, kLibsvm, 0, 1), Error);
}

}  // namespace
}  // namespace capstan::train
