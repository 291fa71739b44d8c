// closures.hpp -- what runs on the workers of `capstan train lr` and `fm`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/metrics.hpp"
#include "train/orders.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/machine.hpp"

namespace capstan::train {

struct SparseInput {
  std::vector<std::string> train;
  std::vector<std::string> test;
  SparseFormat format;
  MachineOptions machine;
};

/// A worker's shares of the data, in memory since they were first asked for, and its buffers.
class SparseShelf {
 public:
  explicit SparseShelf(SparseInput input) : machine(input.machine), input_(std::move(input)) {}
  SparseFile& share(bool test, std::int64_t share, std::int64_t shares);
  bool has_test() const { return !input_.test.empty(); }

  Machine machine;
  SparseExamples batch;
  MachineRows rows, gradients;
  std::vector<std::int64_t> weight_ids;
  std::vector<double> logits;

 private:
  SparseInput input_;
  std::map<std::pair<bool, std::int64_t>, SparseFile> files_;
};
SparseShelf make_sparse_shelf(SparseInput input);

/// Reads the shares, so that bad input is found before training.
DataSizes load_sparse(PerWorker<SparseShelf> shelf, Shares shares);
/// Adds how often the shares have each row.
void count_sparse(PerWorker<SparseShelf> shelf, Shares shares, Variable<std::int32_t> occurrences);
/// For each batch: looks up the rows that it has and no others, pushes their gradients. The last row of
/// weights is the bias, if there is one. Of `factors` and `occurrences` there is one or none: logistic
/// regression has no factors, and without a penalty nobody counts.
TrainResult train_sparse(PerWorker<SparseShelf> shelf, TrainOrder order, UpdateGroup group,
                         Variable<float> weights, std::vector<Variable<float>> factors,
                         std::vector<Variable<std::int32_t>> occurrences);
Scores evaluate_sparse(PerWorker<SparseShelf> shelf, EvaluateOrder order, Variable<float> weights,
                       std::vector<Variable<float>> factors);

}  // namespace capstan::train
