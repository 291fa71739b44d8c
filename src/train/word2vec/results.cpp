// results.cpp -- `capstan train word2vec` as a TrainingProgram: runs it, and converts its report to results.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "train/word2vec/program.hpp"

namespace capstan::train::word2vec {
namespace {

Results results_of(const ProgramOptions& options, const Report& report) {
  Results results{.run = report.run, .quality = nlohmann::json::object()};
  results.headline =
      fmt::format("word2vec on {} words, {} of them different and {} times or more in the text",
                  report.corpus_words, report.vocabulary, options.min_count);
  if (report.similarity) {
    const Similarity& found = *report.similarity;
    results.lines.push_back(fmt::format("similarity: Spearman {:.4f}  ({} of {} pairs)", found.spearman,
                                        found.pairs, found.total));
    results.quality["similarity"] = {
        {"spearman", found.spearman}, {"pairs", found.pairs}, {"total", found.total}};
  }
  if (!options.output.empty()) results.lines.push_back("vectors: " + options.output);
  results.used = {{"dim", options.dim},
                  {"window", options.plan.window},
                  {"negatives", options.plan.negatives},
                  {"subsample", options.plan.subsample},
                  {"min_count", options.min_count},
                  {"batch", options.batch},
                  {"epochs", options.epochs},
                  {"learning_rate", options.learning_rate}};
  results.data = {{"files", report.files},
                  {"words", report.corpus_words},
                  {"trained_words", report.trained_words},
                  {"vocabulary", report.vocabulary},
                  {"vocabulary_seconds", report.vocabulary_seconds}};
  return results;
}

class Word2vecProgram final : public TrainingProgram {
 public:
  explicit Word2vecProgram(ProgramOptions options) : options_(std::move(options)) {}
  const RunOptions& options() const override { return options_; }
  std::string_view unit() const override { return "words"; }
  Results run(const Cluster& cluster, const RunHooks& hooks) const override {
    return results_of(options_, run_program(cluster, options_, hooks));
  }

 private:
  ProgramOptions options_;
};

}  // namespace

std::unique_ptr<TrainingProgram> make_word2vec_program(const ProgramOptions& options) {
  return std::make_unique<Word2vecProgram>(options);
}

}  // namespace capstan::train::word2vec
