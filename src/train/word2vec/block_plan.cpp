// block_plan.cpp -- see block_plan.hpp.
#include "train/word2vec/block_plan.hpp"

#include <algorithm>
#include <cmath>

namespace capstan::train::word2vec {
namespace {

/// Words of a sentence, as in the reference program.
constexpr std::size_t kMaxSentence = 1000;

}  // namespace

std::uint32_t BlockPlan::UsedRows::position(std::int32_t row) {
  std::int32_t& position = position_of[static_cast<std::size_t>(row)];
  if (position < 0) {
    position = static_cast<std::int32_t>(rows.size());
    rows.push_back(row);
  }
  return static_cast<std::uint32_t>(position);
}

void BlockPlan::UsedRows::clear() {
  for (const std::int64_t row : rows) position_of[static_cast<std::size_t>(row)] = -1;
  rows.clear();
}

BlockPlan::BlockPlan(const Vocabulary& vocabulary, const PlanOptions& options)
    : options_(options), index_(vocabulary.words), negatives_(negative_sampler(vocabulary.counts)) {
  const double expected = options.subsample * static_cast<double>(vocabulary.total);
  for (const std::int64_t count : vocabulary.counts) {
    const double ratio = expected / static_cast<double>(count);
    const double keep = options.subsample > 0 ? std::sqrt(ratio) + ratio : 1;
    keep_.push_back(static_cast<std::uint32_t>(std::min(keep, 1.0) * 0xffffffff));
  }
  words_used_.position_of.assign(vocabulary.words.size(), -1);
  contexts_used_.position_of.assign(vocabulary.words.size(), -1);
}

void BlockPlan::begin(std::uint64_t seed, std::uint64_t stream) {
  rng_ = CounterRng(seed, stream);
  drawn_ = 0;
  words_ = 0;
  words_used_.clear();
  contexts_used_.clear();
  pairs_.clear();
  targets_.clear();
}

void BlockPlan::add(std::string_view text) {
  for_each_word(
      text,
      [&](std::string_view word) {
        const std::int32_t row = index_.row_of(word);
        if (row == WordIndex::kUnknown) return;
        ++words_;
        if (random() >> 32 > keep_[static_cast<std::size_t>(row)]) return;
        sentence_.push_back(row);
        if (sentence_.size() == kMaxSentence) add_sentence();
      },
      [&] { add_sentence(); });
}

void BlockPlan::add_sentence() {
  const auto size = static_cast<std::int64_t>(sentence_.size());
  for (std::int64_t center = 0; center < size; ++center) {
    const auto reach = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(options_.window));
    const std::int64_t end = std::min(center + reach + 1, size);
    for (std::int64_t context = std::max<std::int64_t>(center - reach, 0); context < end; ++context) {
      if (context == center) continue;
      add_pair(sentence_[static_cast<std::size_t>(center)], sentence_[static_cast<std::size_t>(context)]);
    }
  }
  sentence_.clear();
}

void BlockPlan::add_pair(std::int32_t center, std::int32_t context) {
  const std::size_t first = targets_.size();
  targets_.push_back(contexts_used_.position(center));
  for (std::int32_t i = 0; i < options_.negatives; ++i) {
    const std::int32_t negative = negatives_.draw(random());
    if (negative != center) targets_.push_back(contexts_used_.position(negative));
  }
  pairs_.push_back({words_used_.position(context), static_cast<std::uint32_t>(targets_.size() - first)});
}

}  // namespace capstan::train::word2vec
