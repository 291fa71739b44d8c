// closures.hpp -- closures of `capstan train mf` on the workers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/embedding_table.hpp"
#include "train/metrics.hpp"
#include "train/mf/bpr.hpp"
#include "train/mf/factorization.hpp"
#include "train/mf/ratings.hpp"
#include "train/mf/user_ranking.hpp"
#include "train/tasks.hpp"

namespace capstan::train::mf {

struct Input {
  PartFiles files;
  std::int64_t factors = 0;
  double l2 = 0;
  bool implicit = false;  // BPR on pairs of user and item, else squared loss on ratings
  std::uint64_t seed = 1;
};

/// The data of a worker.
struct Data {
  Ratings ratings;
  HeldOut valid, test;  // with implicit feedback; valid.known are the training items
};

/// The rows of a table that a batch uses, numbered in the order of their first use.
class RowNumbers {
 public:
  explicit RowNumbers(std::int64_t rows) : number_of_(static_cast<std::size_t>(rows), RatingBatch::kNoRow) {}
  /// Returns kNoRow for a row that the table does not have.
  std::uint32_t number_of(std::int32_t row);
  std::span<const std::int64_t> rows() const noexcept { return rows_; }
  void clear();

 private:
  std::vector<std::uint32_t> number_of_;
  std::vector<std::int64_t> rows_;
};

/// A worker's data, read on first use, and the buffers of a batch. Used by one thread at a time.
class WorkerState {
 public:
  explicit WorkerState(Input input) : input_(std::move(input)) {}

  const Input& input() const noexcept { return input_; }
  FactorizationOptions options() const { return {static_cast<std::size_t>(input_.factors), input_.l2}; }
  /// Throws Error: not_found, invalid_argument "file:line: ...".
  const Data& data();

  /// Start an empty batch.
  void clear_batch();
  void add_rating(const Rating& rating);
  /// Adds the pair and a negative item, which depends on `epoch` and `example`. Skips the pair of a user that
  /// has all items.
  void add_pair(const Rating& rating, std::int64_t epoch, std::int64_t example);
  /// Reads the rows of the batch, with one round trip to each ps.
  void look_up(const EmbeddingTable<Variable>& users, const EmbeddingTable<Variable>& items);
  /// Sets `gradients` to the gradients of `scale` times the batch's loss.
  BatchLoss compute_gradients(double scale);
  void push(const EmbeddingTable<Variable>& users, const EmbeddingTable<Variable>& items) const;

  RatingBatch ratings;
  PairBatch pairs;
  BatchRows rows, gradients;

 private:
  Input input_;
  std::optional<Data> data_;
  std::optional<RowNumbers> users_, items_;
};
WorkerState make_worker_state(Input input);

/// Numbers of rows of the tables, and the mean of the training ratings.
struct RatingTotals {
  std::int64_t users = 0;
  std::int64_t items = 0;
  double mean = 0;
};

/// Reads the files, so that invalid input is reported before training starts. The sizes of held-out data are
/// numbers of ratings, or of users with implicit feedback.
DataSizes load_ratings(PerWorker<WorkerState> state, Shares shares);
RatingTotals count_ratings(PerWorker<WorkerState> state);
/// For each batch: looks up only the rows that it uses, and pushes their gradients.
TrainResult train_factors(PerWorker<WorkerState> state, TrainTask task, UpdateGroup group,
                          EmbeddingTable<Variable> users, EmbeddingTable<Variable> items);
/// Returns the mean penalty of a training example.
double mean_penalty(PerWorker<WorkerState> state, EmbeddingTable<Variable> users,
                    EmbeddingTable<Variable> items);
/// Sums of ratings: "squared_error". Sums of held-out users: "recall@20" and "ndcg@20". With implicit
/// feedback, the training data has only a loss.
Scores evaluate_factors(PerWorker<WorkerState> state, EvaluateTask task, EmbeddingTable<Variable> users,
                        EmbeddingTable<Variable> items);

}  // namespace capstan::train::mf
