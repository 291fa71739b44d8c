// block_plan.hpp -- the pairs of words of a block of text, their negatives, and the rows that they use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "train/counter_rng.hpp"
#include "train/word2vec/kernels.hpp"
#include "train/word2vec/sampler.hpp"
#include "train/word2vec/vocabulary.hpp"

namespace capstan::train::word2vec {

struct PlanOptions {
  std::int32_t window = 5;
  std::int32_t negatives = 5;
  double subsample = 1e-3;  // 0: keep all words
};

/// A plan depends only on the text, the seed and the stream, so that a block that is trained again uses the
/// same rows in the same order. Keeps its buffers between blocks.
class BlockPlan {
 public:
  /// `vocabulary` must outlive this object.
  BlockPlan(const Vocabulary& vocabulary, const PlanOptions& options);

  /// Starts an empty plan that draws random numbers from a stream.
  void begin(std::uint64_t seed, std::uint64_t stream);
  /// Adds text: for each word that subsampling keeps, pairs with the kept words up to b words before and
  /// after it, where b is uniform in 1 to `window`. Lines are sentences; a longer line is several.
  void add(std::string_view text);

  /// Trained words in the text, before subsampling.
  std::int64_t words() const noexcept { return words_; }
  PairList pairs() const noexcept { return {pairs_, targets_}; }
  /// Rows of the table of words, in the order of their first use. PairList has indexes into them.
  std::span<const std::int64_t> word_rows() const noexcept { return words_used_.rows; }
  /// Rows of the table of contexts.
  std::span<const std::int64_t> context_rows() const noexcept { return contexts_used_.rows; }

 private:
  struct UsedRows {
    std::vector<std::int32_t> position_of;  // by row; -1: unused
    std::vector<std::int64_t> rows;
    std::uint32_t position(std::int32_t row);
    void clear();
  };

  std::uint64_t random() { return rng_.bits(drawn_++); }
  void add_sentence();
  void add_pair(std::int32_t center, std::int32_t context);

  PlanOptions options_;
  WordIndex index_;
  AliasSampler negatives_;
  std::vector<std::uint32_t> keep_;  // 2^32 - 1 times the probability that subsampling keeps a word
  CounterRng rng_{0, 0};
  std::uint64_t drawn_ = 0;
  std::int64_t words_ = 0;
  std::vector<std::int32_t> sentence_;
  UsedRows words_used_, contexts_used_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> targets_;
};

}  // namespace capstan::train::word2vec
