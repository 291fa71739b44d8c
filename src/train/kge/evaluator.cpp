// evaluator.cpp -- see evaluator.hpp.
#include "train/kge/evaluator.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "train/assigned_gpu.hpp"
#include "train/kge/known_graph.hpp"

namespace capstan::kge {
namespace {

/// Rows of the entity table that are ranked at a time; bounds the buffer to some MB.
constexpr std::uint64_t kBlockRows = 8192;

}  // namespace

Evaluator::Evaluator(TrueAnswers answers, const RankerOptions& options, std::optional<int> device)
    : answers_(std::move(answers)), ranker_(options, answers_) {
  if (device) gpu_ = make_gpu_evaluator(options, answers_, *device);
}

Metrics Evaluator::rank(std::span<const Triple> triples, std::int64_t evaluation, const Table& entity_table,
                        const Table& relation_table) {
  // The rows of the triples must be those among which they are ranked, so no row is rounded in a message.
  const Table entities = entity_table.exact(), relations = relation_table.exact();
  if (gpu_ && cpu_evaluation_ != evaluation) {
    try {
      return gpu_->rank(triples, evaluation, entities, relations);
    } catch (const Error& error) {
      if (error.code() != Code::resource_exhausted) throw;
      gpu_->end();
      cpu_evaluation_ = evaluation;
      if (!std::exchange(warned_, true)) {
        log::warn("{}; evaluating on the CPU instead", error.what());
      }
    }
  }
  return rank_on_host(triples, entities, relations);
}

bool Evaluator::end() {
  if (gpu_) gpu_->end();
  return gpu_ != nullptr;
}

Metrics Evaluator::rank_on_host(std::span<const Triple> triples, const Table& entities,
                                const Table& relations) {
  ranker_.plan(triples);
  ranker_.begin(entities.lookup(ranker_.entity_ids()).values,
                relations.lookup(ranker_.relation_ids()).values);
  for (std::uint64_t first = 0; first < entities.rows(); first += kBlockRows) {
    block_.resize(std::min(kBlockRows, entities.rows() - first) * entities.width());
    entities.pull(first, block_);
    ranker_.add_block(static_cast<std::int64_t>(first), block_);
  }
  return ranker_.finish();
}

std::unique_ptr<Evaluator> make_evaluator(std::string data, RankerOptions options, bool on_gpu) {
  const std::optional<int> device = on_gpu ? std::optional(train::assigned_gpu()) : std::nullopt;
  return std::make_unique<Evaluator>(known_answers(load_graph(data)), options, device);
}

}  // namespace capstan::kge
