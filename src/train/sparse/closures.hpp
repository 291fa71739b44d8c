// closures.hpp -- closures of `capstan train lr` and `fm` on the workers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/metrics.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/factorization_machine.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

struct SparseInput {
  std::vector<std::string> train;
  std::vector<std::string> test;
  SparseFormat format;
  FmOptions machine;
};

/// A worker's shares of the data, loaded on first use, and its buffers. Used by one thread at a time.
class SparseWorkerState {
 public:
  explicit SparseWorkerState(SparseInput input) : machine(input.machine), input_(std::move(input)) {}
  SparseFile& share(bool test, std::int64_t share, std::int64_t shares);
  bool has_test() const { return !input_.test.empty(); }

  FactorizationMachine machine;
  SparseExamples batch;
  FmRows rows, gradients;
  std::vector<std::int64_t> weight_ids;
  std::vector<double> logits;

 private:
  SparseInput input_;
  std::map<std::pair<bool, std::int64_t>, SparseFile> files_;
};
SparseWorkerState make_sparse_worker_state(SparseInput input);

/// Reads the shares, so that invalid input is reported before training starts.
DataSizes load_sparse(PerWorker<SparseWorkerState> state, Shares shares);
/// Adds the number of occurrences of each row in the shares to `occurrences`.
void count_sparse(PerWorker<SparseWorkerState> state, Shares shares, Variable<std::int32_t> occurrences);
/// For each batch: looks up only the rows that it uses, and pushes their gradients. The last row of `weights`
/// is the bias, if there is one. `factors` has one element for fm and none for lr; `occurrences` has one with
/// an L2 penalty, else none.
TrainResult train_sparse(PerWorker<SparseWorkerState> state, TrainTask task, UpdateGroup group,
                         Variable<float> weights, std::vector<Variable<float>> factors,
                         std::vector<Variable<std::int32_t>> occurrences);
Scores evaluate_sparse(PerWorker<SparseWorkerState> state, EvaluateTask task, Variable<float> weights,
                       std::vector<Variable<float>> factors);

}  // namespace capstan::train
