// slice.hpp -- what runs on the workers: training a slice of an epoch, ranking a slice of the held-out
// triples.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/kge/evaluator.hpp"
#include "train/kge/trainer.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

SliceResult train_slice(PerWorker<std::unique_ptr<Trainer>> trainer, Slice slice, Variable<float> entities,
                        Variable<float> relations);

/// `evaluation` is another number for each time that the held-out triples are ranked, see Evaluator.
Metrics rank_slice(PerWorker<std::unique_ptr<Evaluator>> evaluator, std::int64_t evaluation,
                   std::vector<Triple> triples, Variable<float> entities, Variable<float> relations);
/// Gives back the memory that an evaluation has taken; false where there was none to take.
bool end_evaluation(PerWorker<std::unique_ptr<Evaluator>> evaluator);

}  // namespace capstan::kge
