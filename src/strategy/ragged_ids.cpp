// ragged_ids.cpp -- ragged batches: made from other forms, checked, pruned.
#include "capstan/embedding.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "capstan/error.hpp"

namespace capstan {
namespace {

[[noreturn]] void refuse(Code code, const std::string& reason) { throw Error(code, "ragged ids: " + reason); }

double weight_of(const RaggedIds& batch, std::size_t i) {
  return batch.weights.empty() ? 1 : batch.weights[i];
}

}  // namespace

RaggedIds RaggedIds::from_rows(const std::vector<std::vector<std::int64_t>>& ids,
                               const std::vector<std::vector<double>>& weights) {
  if (!weights.empty() && weights.size() != ids.size()) {
    refuse(Code::invalid_argument,
           fmt::format("{} rows of ids and {} of weights", ids.size(), weights.size()));
  }
  RaggedIds out;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    out.ids.insert(out.ids.end(), ids[row].begin(), ids[row].end());
    out.row_splits.push_back(static_cast<std::int64_t>(out.ids.size()));
    if (weights.empty()) continue;
    if (weights[row].size() != ids[row].size()) {
      refuse(Code::invalid_argument,
             fmt::format("row {} has {} ids and {} weights", row, ids[row].size(), weights[row].size()));
    }
    out.weights.insert(out.weights.end(), weights[row].begin(), weights[row].end());
  }
  return out;
}

RaggedIds RaggedIds::from_pairs(std::span<const std::int64_t> row_of, std::span<const std::int64_t> ids,
                                std::int64_t rows, std::span<const double> weights) {
  if (row_of.size() != ids.size() || (!weights.empty() && weights.size() != ids.size())) {
    refuse(Code::invalid_argument,
           fmt::format("{} row indices, {} ids and {} weights", row_of.size(), ids.size(), weights.size()));
  }
  if (rows < 0) refuse(Code::invalid_argument, fmt::format("{} rows; expected 0 or more", rows));
  RaggedIds out;
  out.row_splits.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (row_of[i] < 0 || row_of[i] >= rows) {
      refuse(Code::out_of_range,
             fmt::format("id {} at position {} is of row {}; there are {} rows", ids[i], i, row_of[i], rows));
    }
    ++out.row_splits[static_cast<std::size_t>(row_of[i]) + 1];
  }
  for (std::size_t row = 1; row < out.row_splits.size(); ++row)
    out.row_splits[row] += out.row_splits[row - 1];
  std::vector<std::int64_t> next = out.row_splits;
  out.ids.resize(ids.size());
  out.weights.resize(weights.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(row_of[i])]++);
    out.ids[at] = ids[i];
    if (!weights.empty()) out.weights[at] = weights[i];
  }
  return out;
}

RaggedIds RaggedIds::from_sparse(const Array<std::int64_t>& indices, std::span<const std::int64_t> ids,
                                 const Shape& dense_shape, std::span<const double> weights) {
  const std::size_t axes = dense_shape.size();
  if (axes < 2) {
    refuse(Code::invalid_argument, "dense_shape has fewer than 2 axes; expected batch axes and one for ids");
  }
  if (indices.shape != Shape{static_cast<std::int64_t>(ids.size()), static_cast<std::int64_t>(axes)}) {
    refuse(Code::invalid_argument, fmt::format("indices of shape {} are given for {} ids and {} axes",
                                               to_string(indices.shape), ids.size(), axes));
  }
  (void)elements_of(dense_shape);
  Shape batch(dense_shape.begin(), dense_shape.end() - 1);
  std::vector<std::int64_t> row_of(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const std::int64_t index = indices.values[i * axes + axis];
      if (index < 0 || index >= dense_shape[axis]) {
        refuse(Code::out_of_range,
               fmt::format("id {} at position {} has index {} on axis {}, whose size is {}", ids[i], i, index,
                           axis, dense_shape[axis]));
      }
      if (axis + 1 < axes) row_of[i] = row_of[i] * batch[axis] + index;
    }
  }
  RaggedIds out = from_pairs(row_of, ids, elements_of(batch), weights);
  if (batch.size() > 1) out.batch = std::move(batch);
  return out;
}

void RaggedIds::check() const {
  const auto size = static_cast<std::int64_t>(ids.size());
  if (row_splits.empty() || row_splits.front() != 0 || row_splits.back() != size) {
    refuse(Code::invalid_argument,
           row_splits.empty() ? "there are no row splits; expected one more than there are rows"
                              : fmt::format("row splits go from {} to {}; expected 0 to {}, the count of ids",
                                            row_splits.front(), row_splits.back(), size));
  }
  for (std::size_t row = 1; row < row_splits.size(); ++row) {
    if (row_splits[row] < row_splits[row - 1]) {
      refuse(Code::invalid_argument, fmt::format("row split {} is {}, less than the previous one, {}", row,
                                                 row_splits[row], row_splits[row - 1]));
    }
  }
  if (!weights.empty() && weights.size() != ids.size()) {
    refuse(Code::invalid_argument,
           fmt::format("{} weights are given for {} ids", weights.size(), ids.size()));
  }
  if (elements_of(batch_shape()) != rows()) {
    refuse(Code::invalid_argument,
           fmt::format("a batch of shape {} is given for {} rows", to_string(batch), rows()));
  }
}

RaggedIds RaggedIds::pruned(std::optional<std::int64_t> default_id) const {
  check();
  RaggedIds out;
  out.batch = batch;
  for (std::size_t row = 0; row + 1 < row_splits.size(); ++row) {
    for (auto i = static_cast<std::size_t>(row_splits[row]);
         i < static_cast<std::size_t>(row_splits[row + 1]); ++i) {
      if (ids[i] < 0 || !(weight_of(*this, i) > 0)) continue;
      out.ids.push_back(ids[i]);
      if (!weights.empty()) out.weights.push_back(weights[i]);
    }
    if (default_id && static_cast<std::int64_t>(out.ids.size()) == out.row_splits.back()) {
      out.ids.push_back(*default_id);
      if (!weights.empty()) out.weights.push_back(1);
    }
    out.row_splits.push_back(static_cast<std::int64_t>(out.ids.size()));
  }
  return out;
}

std::vector<double> RaggedIds::divisors(Combiner combiner) const {
  std::vector<double> out(static_cast<std::size_t>(rows()));
  for (std::size_t row = 0; row < out.size(); ++row) {
    const auto first = static_cast<std::size_t>(row_splits[row]);
    const auto end = static_cast<std::size_t>(row_splits[row + 1]);
    switch (combiner) {
      case Combiner::sum:
        out[row] = first == end ? 0 : 1;
        continue;
      case Combiner::mean:
        for (std::size_t i = first; i < end; ++i) out[row] += weight_of(*this, i);
        continue;
      case Combiner::sqrtn:
        for (std::size_t i = first; i < end; ++i) out[row] += weight_of(*this, i) * weight_of(*this, i);
        out[row] = std::sqrt(out[row]);
        continue;
    }
    refuse(Code::invalid_argument,
           fmt::format("combiner {}; expected mean, sum or sqrtn", static_cast<int>(combiner)));
  }
  return out;
}

}  // namespace capstan
