// problem.hpp -- training data of the tutorial: each label is a sum of unknown weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

constexpr std::int64_t kFeatures = 1000, kBatches = 2000;
constexpr std::size_t kExamples = 64;  // in a batch
constexpr std::size_t kActive = 4;     // features of an example

struct Batch {
  std::vector<std::int64_t> ids;  // kActive per example
  std::vector<double> labels;     // sums of the true weights of these features
};

/// The weight that training must find.
inline double true_weight(std::int64_t id) { return std::sin(static_cast<double>(id)); }

/// Returns batch number `number`, which is the same on every host.
inline Batch make_batch(std::int64_t number) {
  std::mt19937_64 random(static_cast<std::uint64_t>(number));
  Batch batch{{}, std::vector<double>(kExamples)};
  for (double& label : batch.labels) {
    for (std::size_t i = 0; i < kActive; ++i) {
      batch.ids.push_back(static_cast<std::int64_t>(random() % kFeatures));
      label += true_weight(batch.ids.back());
    }
  }
  return batch;
}

/// Returns the gradient of half the squared error. Like `weights`, it has one number for each of batch.ids.
inline std::vector<double> gradient_of(const Batch& batch, std::span<const double> weights) {
  std::vector<double> gradient(weights.size());
  for (std::size_t example = 0; example < batch.labels.size(); ++example) {
    double error = -batch.labels[example];
    for (std::size_t i = 0; i < kActive; ++i) error += weights[example * kActive + i];
    std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(example * kActive), kActive, error);
  }
  return gradient;
}

/// Prints the largest error of the trained weights. Returns true if training has found the true ones.
inline bool check(std::span<const double> weights) {
  double largest = 0;
  for (std::int64_t id = 0; id < kFeatures; ++id) {
    largest = std::max(largest, std::abs(weights[static_cast<std::size_t>(id)] - true_weight(id)));
  }
  std::printf("largest error %.1e\n", largest);
  return largest < 1e-4;
}
