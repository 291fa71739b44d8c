// model_options.hpp -- options of the programs that train a Model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/deep/shape.hpp"
#include "train/run_options.hpp"
#include "train/sparse/examples.hpp"
#include "train/sparse/l2_penalty.hpp"
#include "train/tasks.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

enum class Program : std::uint8_t { lr, fm, mf, mlp, deepfm, dlrm, dcn };

std::string_view to_string(Program program) noexcept;
/// Returns the model of deepfm, dlrm and dcn; none for the other programs.
std::optional<DeepModel> deep_model(Program program) noexcept;
std::string_view to_string(Mode mode) noexcept;

struct ModelOptions : RunOptions {
  Program program = Program::lr;
  std::vector<std::string> data, valid, test;                  // files
  std::vector<std::string> labels, valid_labels, test_labels;  // mlp only
  double valid_fraction = 0;      // of the examples of `data` that validate instead of training
  bool more_of_first = false;     // with the default fraction: see Split
  SparseFormat format;            // all but mf and mlp
  std::uint64_t max_keys = 0;     // of a dynamic table
  std::uint32_t admit_after = 1;  // of a dynamic table
  bool bias = true;
  std::int64_t factors = 0;          // length of a vector; 0 for lr and mlp
  bool implicit = false;             // mf only
  std::vector<std::int64_t> hidden;  // mlp only
  DeepShape deep;                    // deepfm, dlrm and dcn only
  bool on_gpu = false;               // mlp only
  Mode mode = Mode::asynchronous;
  std::int64_t staleness = 0;
  std::int64_t batch = 0;
  double l2 = 0;        // mf and mlp only
  L2Options sparse_l2;  // the others

  PartFiles files() const { return {data, valid, test, valid_fraction, more_of_first}; }
  PartFiles label_files() const { return {labels, valid_labels, test_labels, valid_fraction, more_of_first}; }

  /// Fills unset settings with the program's defaults. Throws Error(invalid_argument) for missing, malformed
  /// or incompatible settings.
  static ModelOptions from(Program program, const Settings& settings);
};

}  // namespace capstan::train
