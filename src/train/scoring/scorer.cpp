// scorer.cpp -- selects the scorer by the state that a training run saved.
#include "train/scoring/scorer.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"

namespace capstan::train {

std::vector<std::int64_t> Scorer::rows_of(const std::string& variable,
                                          std::span<const std::string> /*names*/) const {
  throw Error(Code::invalid_argument,
              fmt::format("\"names\": rows of variable \"{}\" have no names, expected \"ids\"", variable));
}

std::unique_ptr<Scorer> make_scorer(std::shared_ptr<const capstan::Model> model) {
  const SavedProgram saved = read_saved_program(*open_saved_rows(model));
  if (saved.program == "train kge") return make_kge_scorer(std::move(model));
  if (saved.program == "train word2vec") return make_word_scorer(std::move(model));
  if (saved.program == "train mf") return make_factorization_scorer(std::move(model), saved);
  for (const char* name : {"train lr", "train fm", "train deepfm", "train dlrm", "train dcn"}) {
    if (saved.program == name) return make_click_scorer(std::move(model), saved);
  }
  throw Error(Code::failed_precondition,
              fmt::format("{} was saved by {}, expected `capstan train kge`, `word2vec`, `mf`, `lr`, `fm`, "
                          "`deepfm`, `dlrm` or `dcn`",
                          saved.path, saved.description()));
}

}  // namespace capstan::train
