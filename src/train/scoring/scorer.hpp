// scorer.hpp -- scores of a saved model, without a cluster: the interface of one program's model.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "capstan/model.hpp"
#include "train/saved_program.hpp"

namespace capstan::train {

/// Answers requests for scores. Any thread. Requests and answers are JSON objects: docs/serving.md.
class Scorer {
 public:
  virtual ~Scorer() = default;

  /// Properties of the model, such as its dimension.
  virtual nlohmann::json describe() const = 0;
  /// Throws Error: invalid_argument, which names the member, for a malformed request; not_found for an
  /// unknown name; out_of_range for an unknown row; resource_exhausted if the request has more elements than
  /// `max_elements`.
  virtual nlohmann::json score(const nlohmann::json& request, std::size_t max_elements) const = 0;
  /// Returns the rows of names. Throws Error: invalid_argument if rows of the variable have no names,
  /// not_found for an unknown name.
  virtual std::vector<std::int64_t> rows_of(const std::string& variable,
                                            std::span<const std::string> names) const;
};

/// Makes the scorer of the program that saved the model. Throws Error: failed_precondition if no program did
/// so, or it has no scorer; invalid_argument, not_found or data_loss if its properties or variables are
/// missing.
std::unique_ptr<Scorer> make_scorer(std::shared_ptr<const capstan::Model> model);

std::unique_ptr<Scorer> make_kge_scorer(std::shared_ptr<const capstan::Model> model);
std::unique_ptr<Scorer> make_word_scorer(std::shared_ptr<const capstan::Model> model);
std::unique_ptr<Scorer> make_factorization_scorer(std::shared_ptr<const capstan::Model> model,
                                                  const SavedProgram& saved);
/// For lr, fm, deepfm, dlrm and dcn.
std::unique_ptr<Scorer> make_click_scorer(std::shared_ptr<const capstan::Model> model,
                                          const SavedProgram& saved);

}  // namespace capstan::train
