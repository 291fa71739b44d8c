// saved_model.hpp -- a model that `capstan train kge` saved: predictions and evaluation without a cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "io/data/graph.hpp"
#include "train/kge/model.hpp"
#include "train/kge/rank_metrics.hpp"
#include "train/named_rows.hpp"
#include "train/saved_program.hpp"

namespace capstan::kge {

/// Reads rows when they are needed, block by block. The thread rule is that of the SavedRows. All calls throw
/// Error(data_loss), which names the file, if the saved model is damaged.
class SavedModel {
 public:
  /// Reads the names. Throws Error(failed_precondition) if another program saved the rows, or there are no
  /// names.
  explicit SavedModel(std::shared_ptr<const train::SavedRows> saved);

  ModelKind model() const noexcept { return model_; }
  int dim() const noexcept { return dim_; }
  std::int64_t step() const noexcept { return entities_.saved().step(); }
  const train::NamedRows& entities() const noexcept { return entities_; }
  const train::NamedRows& relations() const noexcept { return relations_; }

  /// Returns the `count` entities that have the best scores as tails of (head, relation), best first. Tails
  /// of the training data are not excluded. Throws Error(not_found) with similar names for an unknown name.
  std::vector<train::ScoredName> predict_tails(std::string_view head, std::string_view relation,
                                               std::size_t count) const;
  /// Returns the score of a triple, as predict_tails() does. Throws as predict_tails() does.
  double score(std::string_view head, std::string_view relation, std::string_view tail) const;

  /// Ranks the test triples of a graph among the entities of the model, as training does at its end.
  /// `threads`: of this process; each ranks a share of the triples. Throws Error(invalid_argument), which
  /// names them, if the graph has entities or relations that the model lacks.
  Metrics evaluate(const io::Graph& graph, int threads) const;

 private:
  SavedModel(std::shared_ptr<const train::SavedRows> saved, const train::SavedProgram& program);
  std::vector<float> query(std::string_view head, std::string_view relation) const;

  ModelKind model_;
  int dim_;
  train::NamedRows entities_;
  train::NamedRows relations_;  // each has two rows
};

}  // namespace capstan::kge
