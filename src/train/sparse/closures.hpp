// closures.hpp -- closures of `capstan train lr` and `fm` on the workers. `deep/` loads and counts by them,
// too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/embedding_table.hpp"
#include "train/metrics.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/factorization_machine.hpp"
#include "train/tasks.hpp"

namespace capstan::train {

struct SparseInput {
  PartFiles files;
  SparseFormat format;
  FmOptions machine;
};

/// A worker's shares of the data, loaded on first use, and its buffers. Used by one thread at a time.
class SparseWorkerState {
 public:
  explicit SparseWorkerState(SparseInput input) : machine(input.machine), input_(std::move(input)) {}
  SparseFile& share(Part part, std::int64_t share, std::int64_t shares);
  bool has(Part part) const { return input_.files.has(part); }

  FactorizationMachine machine;
  SparseExamples batch;
  FmRows rows, gradients;
  std::vector<std::int64_t> weight_ids;
  std::vector<double> logits;

 private:
  SparseInput input_;
  std::map<std::pair<Part, std::int64_t>, SparseFile> files_;
};
SparseWorkerState make_sparse_worker_state(SparseInput input);

/// Reads the shares, so that invalid input is reported before training starts.
DataSizes load_sparse(PerWorker<SparseWorkerState> state, Shares shares);

// The tables of a model are Variables, whose rows are numbered, or DynamicTables, whose rows have keys.
// `factors` has one element for fm and none for lr; `occurrences` has one with an L2 penalty, else none.

/// Key of the bias in a DynamicTable of weights. In a Variable the bias is the last row.
inline constexpr std::int64_t kBiasKey = std::numeric_limits<std::int64_t>::min();

/// Returns an optimizer whose pushes add the gradient: a learning rate of -1.
Optimizer counting_optimizer();
/// Adds the number of occurrences of each feature in the shares to `counts`, whose optimizer is
/// counting_optimizer().
template <template <class> class Table>
void count_sparse(PerWorker<SparseWorkerState> state, Shares shares, Table<std::int32_t> counts);
/// Sets the rarities of a share on first use, from the number of occurrences in all `total` examples.
template <class Counts>
void set_rarity(SparseExamples& examples, std::int64_t total, const Counts& counts) {
  if (!examples.rarity.empty() || examples.ids.empty()) return;
  for (const std::int32_t count : counts.lookup(examples.ids).values) {
    examples.rarity.push_back(static_cast<float>(static_cast<double>(total) / std::max(count, 1)));
  }
}
/// For each batch: looks up only the rows that it uses, and pushes their gradients.
template <template <class> class Table>
TrainResult train_sparse(PerWorker<SparseWorkerState> state, TrainTask task, L2Penalty l2, UpdateGroup group,
                         EmbeddingTable<Table> weights, std::vector<EmbeddingTable<Table>> factors,
                         std::vector<Table<std::int32_t>> occurrences);
template <template <class> class Table>
Scores evaluate_sparse(PerWorker<SparseWorkerState> state, EvaluateTask task, EmbeddingTable<Table> weights,
                       std::vector<EmbeddingTable<Table>> factors);

}  // namespace capstan::train
