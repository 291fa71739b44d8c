// closures.cpp -- lookups, gradients and pushes of mf, and evaluation.
#include "train/mf/closures.hpp"

#include <algorithm>
#include <utility>

#include "train/epoch.hpp"

namespace capstan::train::mf {
namespace {

constexpr std::int64_t kEvaluationRatings = 4096;
/// Epoch of the negative items of evaluations, which no training uses.
constexpr std::int64_t kEvaluationEpoch = 0;
/// Separates the random numbers of negative items from those of the order of examples.
constexpr std::uint64_t kNegativesSeed = 0x6e65676174697665;

Data read_data(const Input& input) {
  Data data;
  data.ratings = read_ratings(input.files, input.implicit ? RatingColumn::optional : RatingColumn::required);
  if (!input.implicit) return data;
  const auto name_of = [&](Part part) { return input.files.has(part) ? input.files.of(part).front() : ""; };
  const Ratings& ratings = data.ratings;
  data.valid = make_held_out(ratings.train, ratings.valid, name_of(Part::valid));
  std::vector<Rating> earlier = ratings.train;
  earlier.insert(earlier.end(), ratings.valid.begin(), ratings.valid.end());
  data.test = make_held_out(earlier, ratings.test, name_of(Part::test));
  return data;
}

/// Example `i` of the training data, or of the test ratings.
void add_example(WorkerState& state, const std::vector<Rating>& ratings, std::int64_t example,
                 std::int64_t epoch) {
  const Rating& rating = ratings[static_cast<std::size_t>(example)];
  if (state.input().implicit) {
    state.add_pair(rating, epoch, example);
  } else {
    state.add_rating(rating);
  }
}

/// Reads the rows of `count` examples, `step` apart, in batches, and calls use() for each batch.
template <class Use>
void for_each_batch(WorkerState& state, const std::vector<Rating>& ratings, std::int64_t first,
                    std::int64_t step, std::int64_t count, const EmbeddingTable<Variable>& users,
                    const EmbeddingTable<Variable>& items, const Use& use) {
  for (std::int64_t done = 0; done < count; done += kEvaluationRatings) {
    state.clear_batch();
    for (std::int64_t i = done; i < std::min(count, done + kEvaluationRatings); ++i) {
      add_example(state, ratings, first + i * step, kEvaluationEpoch);
    }
    state.look_up(users, items);
    use();
  }
}

}  // namespace

std::uint32_t RowNumbers::number_of(std::int32_t row) {
  if (static_cast<std::size_t>(row) >= number_of_.size()) return RatingBatch::kNoRow;
  std::uint32_t& number = number_of_[static_cast<std::size_t>(row)];
  if (number == RatingBatch::kNoRow) {
    number = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(row);
  }
  return number;
}

void RowNumbers::clear() {
  for (const std::int64_t row : rows_) number_of_[static_cast<std::size_t>(row)] = RatingBatch::kNoRow;
  rows_.clear();
}

const Data& WorkerState::data() {
  if (!data_) {
    data_ = read_data(input_);
    users_.emplace(data_->ratings.users);
    items_.emplace(data_->ratings.items);
  }
  return *data_;
}

void WorkerState::clear_batch() {
  (void)data();
  users_->clear();
  items_->clear();
  ratings.clear();
  pairs.clear();
}

void WorkerState::add_rating(const Rating& rating) {
  ratings.users.push_back(users_->number_of(rating.user));
  ratings.items.push_back(items_->number_of(rating.item));
  ratings.values.push_back(rating.value);
}

void WorkerState::add_pair(const Rating& rating, std::int64_t epoch, std::int64_t example) {
  const CounterRng random(mix64(input_.seed ^ kNegativesSeed) + static_cast<std::uint64_t>(epoch),
                          static_cast<std::uint64_t>(example));
  const auto negative = draw_negative(data_->valid.known, rating.user, data_->ratings.items, random);
  if (!negative) return;
  pairs.users.push_back(users_->number_of(rating.user));
  pairs.positives.push_back(items_->number_of(rating.item));
  pairs.negatives.push_back(items_->number_of(*negative));
}

void WorkerState::look_up(const EmbeddingTable<Variable>& users, const EmbeddingTable<Variable>& items) {
  rows.users.resize(users_->rows().size() * users.width());
  rows.items.resize(items_->rows().size() * items.width());
  EmbeddingTable<Variable>::lookup_all({users, users_->rows(), rows.users},
                                       {items, items_->rows(), rows.items});
}

BatchLoss WorkerState::compute_gradients(double scale) {
  gradients.users.assign(rows.users.size(), 0);
  gradients.items.assign(rows.items.size(), 0);
  return input_.implicit
             ? add_pair_gradients(pairs, rows, options(), scale, gradients)
             : add_rating_gradients(ratings, rows, options(), data().ratings.mean, scale, gradients);
}

void WorkerState::push(const EmbeddingTable<Variable>& users, const EmbeddingTable<Variable>& items) const {
  EmbeddingTable<Variable>::push_all({users, users_->rows(), gradients.users},
                                     {items, items_->rows(), gradients.items});
}

WorkerState make_worker_state(Input input) { return WorkerState(std::move(input)); }

DataSizes load_ratings(PerWorker<WorkerState> state, Shares /*shares*/) {
  const Data& data = state->data();
  const bool implicit = state->input().implicit;
  const auto size = [](const auto& items) { return static_cast<std::int64_t>(items.size()); };
  return {.train = size(data.ratings.train),
          .valid = implicit ? size(data.valid.users) : size(data.ratings.valid),
          .test = implicit ? size(data.test.users) : size(data.ratings.test),
          .width = data.ratings.users + data.ratings.items};
}

RatingTotals count_ratings(PerWorker<WorkerState> state) {
  const Ratings& ratings = state->data().ratings;
  return {ratings.users, ratings.items, ratings.mean};
}

TrainResult train_factors(PerWorker<WorkerState> state, TrainTask task, UpdateGroup group,
                          EmbeddingTable<Variable> users, EmbeddingTable<Variable> items) {
  const std::vector<Rating>& ratings = state->data().ratings.train;
  TrainResult result;
  run_epoch(task, group, [&](std::int64_t share, std::span<const std::uint32_t> chosen, double scale) {
    state->clear_batch();
    for (const std::uint32_t i : chosen) {
      add_example(*state, ratings, share + std::int64_t{i} * task.shares.total_count, task.epoch);
    }
    state->look_up(users, items);
    const BatchLoss loss = state->compute_gradients(scale);
    state->push(users, items);
    result.log_loss += loss.loss;
    result.penalty += loss.penalty;
    result.examples += static_cast<std::int64_t>(chosen.size());
  });
  return result;
}

double mean_penalty(PerWorker<WorkerState> state, EmbeddingTable<Variable> users,
                    EmbeddingTable<Variable> items) {
  const std::vector<Rating>& ratings = state->data().ratings.train;
  const auto count = static_cast<std::int64_t>(ratings.size());
  double sum = 0;
  for_each_batch(*state, ratings, 0, 1, count, users, items,
                 [&] { sum += state->compute_gradients(0).penalty; });
  return sum / static_cast<double>(count);
}

Scores evaluate_factors(PerWorker<WorkerState> state, EvaluateTask task, EmbeddingTable<Variable> users,
                        EmbeddingTable<Variable> items) {
  const Data& data = state->data();
  const bool implicit = state->input().implicit;
  if (implicit && task.part != Part::train) {
    return rank_held_out(task.part == Part::valid ? data.valid : data.test, task, users, items);
  }
  const std::vector<Rating>& ratings = data.ratings.of(task.part);
  Scores scores;
  scores.examples = task.count;
  for_each_batch(*state, ratings, task.share + task.first * task.total_shares, task.total_shares, task.count,
                 users, items, [&] {
                   if (implicit) {
                     scores.log_loss_sum += state->compute_gradients(0).loss;
                     return;
                   }
                   for (std::size_t n = 0; n < state->ratings.size(); ++n) {
                     const double error =
                         static_cast<double>(state->ratings.values[n]) -
                         predict(state->ratings, n, state->rows, state->options().factors, data.ratings.mean);
                     scores.sums["squared_error"] += error * error;
                   }
                 });
  return scores;
}

}  // namespace capstan::train::mf
