// saved_model.hpp -- a model in a checkpoint of `capstan train kge`: predictions and evaluation without a
// cluster. Also the words of a checkpoint of `capstan train word2vec`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/graph.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "train/kge/model.hpp"
#include "train/kge/rank_metrics.hpp"

namespace capstan::kge {

/// An entity and its score; higher scores are better.
struct ScoredEntity {
  std::string name;
  double score = 0;
};

/// Reads rows when they are needed, block by block. One thread at a time. All calls throw Error(data_loss),
/// which names the file, if the checkpoint is damaged. The entities of word2vec are the words; it has no
/// relations, so predict_tails() and evaluate() throw Error(failed_precondition).
class SavedModel {
 public:
  /// Opens one checkpoint, and reads the names. Throws Error: not_found or data_loss as CheckpointReader
  /// does; failed_precondition if the checkpoint is of another program, or has no names.
  explicit SavedModel(const std::filesystem::path& checkpoint);

  ModelKind model() const noexcept { return model_; }
  int dim() const noexcept { return dim_; }
  std::int64_t step() const noexcept { return reader_.step(); }
  const std::vector<std::string>& entities() const noexcept { return entities_; }
  const std::vector<std::string>& relations() const noexcept { return relations_; }

  /// Returns the `count` entities that have the best scores as tails of (head, relation), best first. Tails
  /// of the training data are not excluded. Throws Error(not_found) with similar names for an unknown name.
  std::vector<ScoredEntity> predict_tails(std::string_view head, std::string_view relation,
                                          std::size_t count) const;
  /// Returns the `count` entities whose rows have the largest cosine with that of `entity`, which is
  /// excluded. Throws as predict_tails() does.
  std::vector<ScoredEntity> similar(std::string_view entity, std::size_t count) const;

  /// Ranks the test triples of a graph among the entities of the model, as training does at its end.
  /// `threads`: of this process; each ranks a share of the triples. Throws Error(invalid_argument), which
  /// names them, if the graph has entities or relations that the model lacks.
  Metrics evaluate(const io::Graph& graph, int threads) const;

 private:
  std::int64_t entity(std::string_view name) const;
  std::int64_t relation(std::string_view name) const;
  std::vector<float> rows(std::string_view table, std::int64_t first, std::int64_t count) const;
  /// Calls score(row) for each entity, and returns the best ones but `excluded`.
  std::vector<ScoredEntity> best_entities(std::size_t count, std::int64_t excluded,
                                          const std::function<double(const float* row)>& score) const;

  void require_graph() const;

  io::CheckpointReader reader_;
  bool has_graph_ = false;   // else words
  std::string entity_rows_;  // variable
  ModelKind model_ = ModelKind::complex;
  int dim_ = 0;
  std::vector<std::string> entities_;
  std::vector<std::string> relations_;
};

}  // namespace capstan::kge
