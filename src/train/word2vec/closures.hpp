// closures.hpp -- what a worker of `capstan train word2vec` does with a block of text.
#pragma once

#include <cstdint>
#include <memory>

#include "capstan/capstan.hpp"
#include "train/word2vec/block_plan.hpp"
#include "train/word2vec/corpus.hpp"
#include "train/word2vec/step.hpp"
#include "train/word2vec/vocabulary.hpp"

namespace capstan::train::word2vec {

/// A part of an epoch that a worker trains on one copy of its rows.
struct Block {
  Piece text;
  std::uint64_t seed = 0;
  std::uint64_t number = 0;  // since the start of training; selects the random numbers
  float rate = 0;
  std::int32_t workers = 1;  // that train blocks at the same time
};

struct BlockResult {
  double loss_sum = 0;  // of the pairs that were sampled for the loss
  std::int64_t loss_pairs = 0;
  std::int64_t words = 0;  // trained words in the text, before subsampling
};

struct TrainerOptions {
  Vocabulary vocabulary;
  PlanOptions plan;
  std::int32_t dim = 0;
};

/// A worker's vocabulary and buffers. Used by one thread at a time.
class Trainer {
 public:
  explicit Trainer(TrainerOptions options);
  Trainer(const Trainer&) = delete;  // the plan refers to the vocabulary
  Trainer& operator=(const Trainer&) = delete;

  /// Looks up the rows of a block, trains its pairs, and pushes the differences.
  BlockResult train(const Block& block, const Variable<float>& words, const Variable<float>& contexts);

 private:
  Vocabulary vocabulary_;
  CorpusReader reader_;
  BlockPlan plan_;
  Step step_;
};

std::unique_ptr<Trainer> make_trainer(TrainerOptions options);
BlockResult train_block(PerWorker<std::unique_ptr<Trainer>> trainer, Block block, Variable<float> words,
                        Variable<float> contexts);

}  // namespace capstan::train::word2vec
