// slice.cpp -- the closures of `capstan train kge`.
#include "train/kge/slice.hpp"

namespace capstan::kge {

SliceResult train_slice(PerWorker<std::unique_ptr<Trainer>> trainer, Slice slice, Table entities,
                        Table relations) {
  return (*trainer)->train(slice, entities, relations);
}

Metrics rank_slice(PerWorker<std::unique_ptr<Evaluator>> evaluator, std::int64_t evaluation,
                   std::vector<Triple> triples, Table entities, Table relations) {
  return (*evaluator)->rank(triples, evaluation, entities, relations);
}

bool end_evaluation(PerWorker<std::unique_ptr<Evaluator>> evaluator) { return (*evaluator)->end(); }

}  // namespace capstan::kge
