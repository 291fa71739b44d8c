// word2vec_step_test.cpp -- the step against numerical gradients and a plain implementation.
#include "train/word2vec/step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "train/word2vec/kernels.hpp"

namespace capstan::train::word2vec {
namespace {

using Values = std::vector<double>;

struct Problem {
  std::size_t dim = 0;
  Values words, contexts;
  std::vector<Pair> pairs;
  std::vector<std::uint32_t> targets;

  Problem(std::size_t dimension, std::size_t word_rows, std::size_t context_rows, std::size_t pair_count,
          std::uint32_t most_targets, double size = 0.5)
      : dim(dimension) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(static_cast<float>(-size), static_cast<float>(size));
    for (std::size_t i = 0; i < word_rows * dim; ++i) words.push_back(static_cast<double>(value(random)));
    for (std::size_t i = 0; i < context_rows * dim; ++i)
      contexts.push_back(static_cast<double>(value(random)));
    for (std::size_t i = 0; i < pair_count; ++i) {
      const auto count = static_cast<std::uint32_t>(1 + random() % most_targets);
      pairs.push_back({static_cast<std::uint32_t>(random() % word_rows), count});
      for (std::uint32_t t = 0; t < count; ++t)
        targets.push_back(static_cast<std::uint32_t>(random() % context_rows));
    }
  }

  double score(std::uint32_t word, std::uint32_t target) const {
    double sum = 0;
    for (std::size_t i = 0; i < dim; ++i) sum += words[word * dim + i] * contexts[target * dim + i];
    return sum;
  }
  /// The loss of a pair whose targets begin at `first`.
  double loss(const Pair& pair, std::size_t first) const {
    double sum = 0;
    for (std::size_t t = 0; t < pair.targets; ++t) {
      const double s = score(pair.word, targets[first + t]);
      sum += std::log1p(std::exp(t == 0 ? -s : s));
    }
    return sum;
  }
  /// Steps of SGD, one pair after another. A target that occurs twice is changed twice.
  void train(double rate) {
    std::size_t first = 0;
    for (const Pair& pair : pairs) {
      const Values before(words);
      std::vector<double> weights;
      for (std::size_t t = 0; t < pair.targets; ++t) {
        weights.push_back((t == 0 ? 1 : 0) - 1 / (1 + std::exp(-score(pair.word, targets[first + t]))));
      }
      for (std::size_t t = 0; t < pair.targets; ++t) {
        for (std::size_t i = 0; i < dim; ++i) {
          const std::size_t context = targets[first + t] * dim + i;
          words[pair.word * dim + i] += rate * weights[t] * contexts[context];
          contexts[context] += rate * weights[t] * before[pair.word * dim + i];
        }
      }
      first += pair.targets;
    }
  }
};

/// Trains a copy of the rows; returns the gradients of both tables, words first.
std::vector<float> gradients(const Problem& problem, float rate, int workers = 1) {
  Step step(problem.dim);
  step.resize(problem.words.size() / problem.dim, problem.contexts.size() / problem.dim);
  std::ranges::transform(problem.words, step.word_rows().begin(),
                         [](double x) { return static_cast<float>(x); });
  std::ranges::transform(problem.contexts, step.context_rows().begin(),
                         [](double x) { return static_cast<float>(x); });
  step.train({problem.pairs, problem.targets}, rate, workers);
  std::vector<float> both(step.word_rows().begin(), step.word_rows().end());
  both.insert(both.end(), step.context_rows().begin(), step.context_rows().end());
  return both;
}

TEST(Word2vecStep, HasTheNumericalGradientOfTheLoss) {
  for (const std::size_t dim : {1, 7, 16, 100}) {
    Problem problem(dim, 1, 6, 1, 6);
    problem.pairs = {{0, 6}};
    problem.targets = {2, 0, 5, 1, 4, 3};
    const std::vector<float> found = gradients(problem, 1);
    std::size_t i = 0;
    for (Values* table : {&problem.words, &problem.contexts}) {
      for (double& value : *table) {
        constexpr double kStep = 1e-5;
        const double at = value;
        value = at + kStep;
        const double above = problem.loss(problem.pairs[0], 0);
        value = at - kStep;
        const double below = problem.loss(problem.pairs[0], 0);
        value = at;
        EXPECT_NEAR(static_cast<double>(found[i]), (above - below) / (2 * kStep), 2e-6) << dim << " " << i;
        ++i;
      }
    }
  }
}

TEST(Word2vecStep, TrainsPairsOneAfterAnother) {
  for (const std::size_t dim : {3, 48, 100, 300}) {
    const Problem problem(dim, 20, 30, 500, 9, 1 / std::sqrt(static_cast<double>(dim)));
    Problem plain = problem;
    plain.train(0.05);
    const std::vector<float> found = gradients(problem, 0.05F);
    double largest = 0;
    for (std::size_t i = 0; i < problem.words.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(found[i]), problem.words[i] - plain.words[i], 1e-5) << dim << " " << i;
      largest = std::max(largest, std::abs(static_cast<double>(found[i])));
    }
    for (std::size_t i = 0; i < problem.contexts.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(found[problem.words.size() + i]),
                  problem.contexts[i] - plain.contexts[i], 1e-5)
          << dim << " " << i;
    }
    EXPECT_GT(largest, 0.05) << "the steps matter";
  }
}

TEST(Word2vecStep, ReportsTheLossOfSampledPairs) {
  const Problem problem(10, 4, 5, kLossEvery + 1, 3);
  Step step(problem.dim);
  step.resize(4, 5);
  std::ranges::fill(step.word_rows(), 0.0F);
  std::ranges::fill(step.context_rows(), 0.0F);
  const SampledLoss loss = step.train({problem.pairs, problem.targets}, 0.1F, 1);
  EXPECT_EQ(loss.pairs, 2);
  const double targets = problem.pairs.front().targets + problem.pairs.back().targets;
  EXPECT_NEAR(loss.sum, targets * std::log(2), 1e-6) << "all products are 0";
}

TEST(Word2vecStep, DampingIsBetweenTheSumAndTheMeanOfTheDifferences) {
  EXPECT_EQ(damping(0.025F, 1000, 1), 1);
  EXPECT_EQ(damping(0.025F, 0, 4), 1);
  EXPECT_NEAR(damping(0.025F, 1, 4), 1, 0.03);
  EXPECT_NEAR(damping(0.025F, 100'000, 4), 0.25, 1e-6);
  float last = 1;
  for (std::uint32_t updates = 1; updates < 2000; updates *= 2) {
    const float now = damping(0.025F, updates, 4);
    EXPECT_LT(now, last);
    last = now;
  }
}

TEST(Word2vecStep, DampsTheRowsThatOtherWorkersChangeToo) {
  const Problem problem(10, 4, 5, 200, 3);
  const std::vector<float> alone = gradients(problem, 0.05F), together = gradients(problem, 0.05F, 3);
  std::vector<std::uint32_t> updates(9);
  std::size_t target = 0;
  for (const Pair& pair : problem.pairs) {
    updates[pair.word] += pair.targets;
    for (std::uint32_t t = 0; t < pair.targets; ++t) ++updates[4 + problem.targets[target++]];
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(together[i], alone[i] * damping(0.05F, updates[i / 10], 3), 1e-6F);
  }
}

TEST(Word2vecStep, StaysFiniteForLargeProducts) {
  const Problem problem(64, 2, 3, 20, 3, 100);
  for (const float value : gradients(problem, 0.1F)) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace capstan::train::word2vec
