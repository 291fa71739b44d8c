// closures.cpp -- see closures.hpp.
#include "train/word2vec/closures.hpp"

#include <memory>
#include <utility>

namespace capstan::train::word2vec {

Trainer::Trainer(TrainerOptions options)
    : vocabulary_(std::move(options.vocabulary)),
      plan_(vocabulary_, options.plan),
      step_(static_cast<std::size_t>(options.dim)) {}

BlockResult Trainer::train(const Block& block, const Variable<float>& words,
                           const Variable<float>& contexts) {
  plan_.begin(block.seed, block.number);
  for (const ByteRange& range : block.text) plan_.add(reader_.read(range));
  if (plan_.pairs().pairs.empty()) return {.words = plan_.words()};

  step_.resize(plan_.word_rows().size(), plan_.context_rows().size());
  // Otherwise, the rows would lack the differences of the block before.
  words.flush();
  lookup_all(Lookup<float>{words, plan_.word_rows(), step_.word_rows()},
             Lookup<float>{contexts, plan_.context_rows(), step_.context_rows()});
  const SampledLoss loss = step_.train(plan_.pairs(), block.rate, block.workers);
  push_all(Push<float>{words, plan_.word_rows(), step_.word_rows()},
           Push<float>{contexts, plan_.context_rows(), step_.context_rows()});
  return {.loss_sum = loss.sum, .loss_pairs = loss.pairs, .words = plan_.words()};
}

std::unique_ptr<Trainer> make_trainer(TrainerOptions options) {
  return std::make_unique<Trainer>(std::move(options));
}

BlockResult train_block(PerWorker<std::unique_ptr<Trainer>> trainer, Block block, Variable<float> words,
                        Variable<float> contexts) {
  return (*trainer)->train(block, words, contexts);
}

}  // namespace capstan::train::word2vec
