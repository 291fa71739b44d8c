// factorization_machine.cpp -- sums are in double, since a batch may be the complete data.
#include "train/sparse/factorization_machine.hpp"

#include <algorithm>

#include "train/log_loss.hpp"
#include "train/sparse/kernels.hpp"

namespace capstan::train {
namespace {

void round_to(const std::vector<double>& from, std::vector<float>& to) {
  to.resize(from.size());
  std::transform(from.begin(), from.end(), to.begin(), [](double x) { return static_cast<float>(x); });
}

FactorTerms terms_of(const SparseExamples& batch, const FmRows& rows, std::size_t factors,
                     std::size_t example) {
  const std::uint64_t first = batch.offsets[example];
  return {.slots = batch.slots.data() + first,
          .values = batch.unit_values ? nullptr : batch.values.data() + first,
          .count = batch.offsets[example + 1] - first,
          .rows = rows.factors.data(),
          .factors = factors};
}

double value_of_feature(const SparseExamples& batch, std::uint64_t k) {
  return batch.unit_values ? 1 : static_cast<double>(batch.values[k]);
}

}  // namespace

void FactorizationMachine::resize(const SparseExamples& batch, FmRows& rows) const {
  rows.weights.resize(batch.ids.size() + (options_.bias ? 1 : 0));
  rows.factors.resize(batch.ids.size() * static_cast<std::size_t>(options_.factors));
}

double FactorizationMachine::logit(const SparseExamples& batch, const FmRows& rows, std::size_t example) {
  const auto factors = static_cast<std::size_t>(options_.factors);
  const std::uint64_t first = batch.offsets[example], end = batch.offsets[example + 1];
  double logit = options_.bias ? static_cast<double>(rows.weights.back()) : 0;
  for (std::uint64_t k = first; k < end; ++k) {
    logit += static_cast<double>(rows.weights[batch.slots[k]]) * value_of_feature(batch, k);
  }
  if (factors == 0) return logit;
  sums_.resize(factors);
  double pairs = -sum_factors(terms_of(batch, rows, factors, example), sums_.data());
  for (const double sum : sums_) pairs += sum * sum;
  return logit + pairs / 2;
}

void FactorizationMachine::logits(const SparseExamples& batch, const FmRows& rows, std::vector<double>& out) {
  out.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) out[i] = logit(batch, rows, i);
}

FmLoss FactorizationMachine::gradients(const SparseExamples& batch, const FmRows& rows, const L2Penalty& l2,
                                       double scale, FmRows& gradients) {
  const auto factors = static_cast<std::size_t>(options_.factors);
  weight_gradients_.assign(rows.weights.size(), 0);
  factor_gradients_.assign(rows.factors.size(), 0);
  FmLoss loss;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const bool positive = batch.labels[i] != 0;
    const double z = logit(batch, rows, i);
    loss.log_loss += log_loss(z, positive);
    const double slope = scale * log_loss_slope(z, positive);
    if (options_.bias) weight_gradients_.back() += slope;
    for (std::uint64_t k = batch.offsets[i]; k < batch.offsets[i + 1]; ++k) {
      weight_gradients_[batch.slots[k]] += slope * value_of_feature(batch, k);
    }
    if (factors > 0) {
      add_factor_gradients(terms_of(batch, rows, factors, i), sums_.data(), slope, factor_gradients_.data());
    }
  }
  if (l2.any()) loss.penalty = penalize(batch, rows, l2, scale);
  round_to(weight_gradients_, gradients.weights);
  round_to(factor_gradients_, gradients.factors);
  return loss;
}

double FactorizationMachine::penalize(const SparseExamples& batch, const FmRows& rows, const L2Penalty& l2,
                                      double scale) {
  const auto factors = static_cast<std::size_t>(options_.factors);
  const std::vector<std::int32_t> counts = occurrences(batch);
  double penalty = 0;
  for (std::size_t slot = 0; slot < counts.size(); ++slot) {
    const double terms = static_cast<double>(batch.rarity[slot]) * counts[slot];
    const double weight_decay = terms * l2.weights, factor_decay = terms * l2.factors;
    const double w = static_cast<double>(rows.weights[slot]);
    weight_gradients_[slot] += scale * weight_decay * w;
    double squares = 0;
    for (std::size_t k = slot * factors; k < (slot + 1) * factors; ++k) {
      const double v = static_cast<double>(rows.factors[k]);
      factor_gradients_[k] += scale * factor_decay * v;
      squares += v * v;
    }
    penalty += weight_decay / 2 * w * w + factor_decay / 2 * squares;
  }
  return penalty;
}

}  // namespace capstan::train
