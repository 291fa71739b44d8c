// deep_network.cpp -- forward and backward of a deep click model.
#include "train/deep/deep_network.hpp"

#include <algorithm>

#include "train/counter_rng.hpp"
#include "train/log_loss.hpp"

namespace capstan::train {
namespace {

constexpr std::size_t kEmbeddings = DeepShape::kFields;

Layers top_layers(const DeepShape& shape, const Interaction& interaction) {
  std::vector<std::int64_t> widths{static_cast<std::int64_t>(interaction.width())};
  widths.insert(widths.end(), shape.hidden.begin(), shape.hidden.end());
  widths.push_back(1);
  return Layers(std::move(widths));
}

}  // namespace

std::unique_ptr<Interaction> make_interaction(const DeepShape& shape) {
  switch (shape.model) {
    case DeepModel::deepfm:
      return make_deepfm(shape);
    case DeepModel::dlrm:
      return make_dlrm(shape);
    case DeepModel::dcn:
      break;
  }
  return make_dcn(shape);
}

DeepNetwork::DeepNetwork(const DeepShape& shape)
    : shape_(shape), interaction_(make_interaction(shape)), top_(top_layers(shape, *interaction_)) {
  const DenseParameters all = parameters(0);
  top_begin_ = all.size() - top_.layers().size();
  penalized_ = all.penalized;
}

DenseParameters DeepNetwork::parameters(std::uint64_t seed) const {
  DenseParameters all;
  interaction_->add_parameters(mix64(seed), all);
  all.add_layers(top_.layers(), seed);
  return all;
}

void DeepNetwork::resize(const SparseExamples& batch, DeepValues& values) const {
  values.rows.resize(batch.ids.size() * shape_.row_width());
  values.parameters.resize(penalized_.size());
}

FieldSlots DeepNetwork::fields_of(const SparseExamples& batch, std::size_t example) const {
  return {.slots = batch.slots.data() + example * kEmbeddings,
          .count = kEmbeddings,
          .factors = static_cast<std::size_t>(shape_.factors)};
}

void DeepNetwork::gather(const SparseExamples& batch, std::span<const float> rows) {
  const auto factors = static_cast<std::size_t>(shape_.factors);
  fields_.examples = batch.size();
  fields_.inputs.resize(batch.size() * shape_.inputs());
  float* into = fields_.inputs.data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    into = std::copy_n(batch.dense.data() + i * DeepShape::kIntegers, DeepShape::kIntegers, into);
    logits_[i] += gather_fields(fields_of(batch, i), rows.data(), into);
    into += kEmbeddings * factors;
  }
}

void DeepNetwork::scatter(const SparseExamples& batch, std::span<float> rows) const {
  const auto factors = static_cast<std::size_t>(shape_.factors);
  const float* from = field_slopes_.inputs.data();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    from += DeepShape::kIntegers;
    scatter_fields(fields_of(batch, i), logit_slopes_[i], from, rows.data());
    from += kEmbeddings * factors;
  }
}

std::span<const float> DeepNetwork::logits(const SparseExamples& batch, const DeepValues& values) {
  const std::span<const float> parameters(values.parameters);
  logits_.assign(batch.size(), 0);
  gather(batch, values.rows);
  top_.set_inputs(interaction_->forward(fields_, parameters.first(top_begin_), logits_));
  const std::span<const float> top = top_.forward(parameters.subspan(top_begin_));
  for (std::size_t i = 0; i < logits_.size(); ++i) logits_[i] += top[i];
  return logits_;
}

TrainResult DeepNetwork::gradients(const SparseExamples& batch, const DeepValues& values, double scale,
                                   L2Penalty l2, DeepValues& gradient) {
  TrainResult result;
  result.examples = static_cast<std::int64_t>(batch.size());
  logits(batch, values);
  logit_slopes_.resize(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const bool positive = batch.labels[i] != 0;
    const auto logit = static_cast<double>(logits_[i]);
    result.log_loss += log_loss(logit, positive);
    logit_slopes_[i] = static_cast<float>(scale * log_loss_slope(logit, positive));
  }
  gradient.rows.assign(values.rows.size(), 0);
  gradient.parameters.assign(values.parameters.size(), 0);
  const std::span<const float> parameters(values.parameters);
  const std::span<float> into(gradient.parameters);
  feature_slopes_.resize(batch.size() * interaction_->width());
  top_.backward(parameters.subspan(top_begin_), logit_slopes_, into.subspan(top_begin_), feature_slopes_);
  interaction_->backward(fields_, parameters.first(top_begin_), feature_slopes_, logit_slopes_,
                         into.first(top_begin_), field_slopes_);
  scatter(batch, gradient.rows);
  if (l2.any()) result.penalty = penalize(batch, values, scale, l2, gradient);
  return result;
}

double DeepNetwork::penalize(const SparseExamples& batch, const DeepValues& values, double scale,
                             L2Penalty l2, DeepValues& gradient) const {
  const std::size_t width = shape_.row_width();
  const std::vector<std::int32_t> counts = occurrences(batch);
  double penalty = 0;
  for (std::size_t slot = 0; slot < batch.ids.size(); ++slot) {
    const double terms = static_cast<double>(batch.rarity[slot]) * counts[slot];
    for (std::size_t k = 0; k < width; ++k) {
      const double decay = (k == 0 ? l2.weights : l2.factors) * terms;
      const auto x = static_cast<double>(values.rows[slot * width + k]);
      gradient.rows[slot * width + k] += static_cast<float>(scale * decay * x);
      penalty += decay / 2 * x * x;
    }
  }
  const double decay = l2.factors * static_cast<double>(batch.size());
  const auto step = static_cast<float>(scale * decay);
  for (std::size_t k = 0; k < penalized_.size(); ++k) {
    if (penalized_[k] != 0) gradient.parameters[k] += step * values.parameters[k];
  }
  return penalty + decay / 2 * sum_of_squares(penalized_, values.parameters);
}

}  // namespace capstan::train
