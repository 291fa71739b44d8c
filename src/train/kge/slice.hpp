// slice.hpp -- closures of `capstan train kge` on the workers: train a slice of an epoch, rank a slice of the
// held-out triples.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capstan/capstan.hpp"
#include "train/kge/evaluator.hpp"
#include "train/kge/trainer.hpp"
#include "train/kge/triple.hpp"

namespace capstan::kge {

SliceResult train_slice(PerWorker<std::unique_ptr<Trainer>> trainer, Slice slice, Table entities,
                        Table relations);

/// `evaluation` numbers the evaluations, see Evaluator.
Metrics rank_slice(PerWorker<std::unique_ptr<Evaluator>> evaluator, std::int64_t evaluation,
                   std::vector<Triple> triples, Table entities, Table relations);
/// Frees the GPU memory of an evaluation; returns false without a GPU.
bool end_evaluation(PerWorker<std::unique_ptr<Evaluator>> evaluator);

}  // namespace capstan::kge
