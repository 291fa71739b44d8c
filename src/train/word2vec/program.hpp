// program.hpp -- the coordinator's part of `capstan train word2vec`: vocabulary, epochs of blocks, results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/program.hpp"
#include "train/word2vec/block_plan.hpp"
#include "train/word2vec/similarity.hpp"
#include "train/word2vec/vectors_file.hpp"

namespace capstan::train::word2vec {

struct ProgramOptions : RunOptions {
  std::vector<std::string> data;
  std::int32_t dim = 100;
  PlanOptions plan;
  std::int64_t min_count = 5;
  std::int64_t batch = 0;  // approximate number of words in a block
  double learning_rate = 0.025;
  std::string output;  // empty: none
  VectorsFormat output_format = VectorsFormat::text;
  std::string similarity;  // file of scored pairs; empty: none

  /// Fills unset settings with the program's defaults. Throws Error(invalid_argument) without --data, and for
  /// settings that the program does not have: another optimizer than sgd, --patience, --eval-every, --device
  /// cuda.
  static ProgramOptions from(const Settings& settings);
};

struct Report {
  RunReport run;
  std::int64_t files = 0;
  std::int64_t corpus_words = 0;   // with repetitions, before --min-count
  std::int64_t trained_words = 0;  // with repetitions
  std::int64_t vocabulary = 0;
  double vocabulary_seconds = 0;  // for the counts of the words
  std::optional<Similarity> similarity;
};

/// Makes the program of `capstan train word2vec`.
std::unique_ptr<TrainingProgram> make_word2vec_program(const ProgramOptions& options);

/// Counts the words, trains, writes the vectors and saves checkpoints. Runs on the coordinator. Throws Error.
Report run_program(const Cluster& cluster, const ProgramOptions& options, const RunHooks& hooks);

}  // namespace capstan::train::word2vec
