// factorization_machine.cpp -- sums are in double, since a batch may be the complete data.
#include "train/sparse/factorization_machine.hpp"

#include <algorithm>

#include "train/log_loss.hpp"

namespace capstan::train {
namespace {

void round_to(const std::vector<double>& from, std::vector<float>& to) {
  to.resize(from.size());
  std::transform(from.begin(), from.end(), to.begin(), [](double x) { return static_cast<float>(x); });
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
    logit += static_cast<double>(rows.weights[batch.slots[k]]) * static_cast<double>(batch.values[k]);
  }
  if (factors == 0) return logit;
  sums_.assign(factors, 0);
  double squares = 0;
  for (std::uint64_t k = first; k < end; ++k) {
    const float* row = rows.factors.data() + batch.slots[k] * factors;
    const double x = static_cast<double>(batch.values[k]);
    for (std::size_t f = 0; f < factors; ++f) {
      const double term = static_cast<double>(row[f]) * x;
      sums_[f] += term;
      squares += term * term;
    }
  }
  double pairs = -squares;
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
      const std::uint32_t slot = batch.slots[k];
      const double x = static_cast<double>(batch.values[k]);
      const double w = static_cast<double>(rows.weights[slot]);
      const double rarity = l2.any() ? static_cast<double>(batch.rarity[slot]) : 0;
      const double weight_decay = rarity * l2.weights, factor_decay = rarity * l2.factors;
      weight_gradients_[slot] += slope * x + scale * weight_decay * w;
      double squares = 0;
      const float* row = rows.factors.data() + slot * factors;
      double* gradient = factor_gradients_.data() + slot * factors;
      for (std::size_t f = 0; f < factors; ++f) {
        const double v = static_cast<double>(row[f]);
        gradient[f] += slope * x * (sums_[f] - v * x) + scale * factor_decay * v;
        squares += v * v;
      }
      loss.penalty += weight_decay / 2 * w * w + factor_decay / 2 * squares;
    }
  }
  round_to(weight_gradients_, gradients.weights);
  round_to(factor_gradients_, gradients.factors);
  return loss;
}

}  // namespace capstan::train
