// model_options.hpp -- options of `capstan train lr|fm|mlp`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/variable_options.hpp"
#include "train/sparse/examples.hpp"
#include "train/stop_request.hpp"
#include "train/table_precision.hpp"
#include "train/tasks.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

enum class Program : std::uint8_t { lr, fm, mlp };

std::string_view to_string(Program program) noexcept;
std::string_view to_string(Mode mode) noexcept;

struct ModelOptions {
  Program program = Program::lr;
  std::vector<std::string> data, test;           // files
  std::vector<std::string> labels, test_labels;  // mlp only
  SparseFormat format;                           // lr and fm only
  std::uint64_t max_keys = 0;                    // of a dynamic table
  std::uint32_t admit_after = 1;                 // of a dynamic table
  bool bias = true;
  std::int64_t factors = 0;          // fm only
  std::vector<std::int64_t> hidden;  // mlp only
  bool on_gpu = false;               // mlp only
  Mode mode = Mode::asynchronous;
  std::int64_t staleness = 0;
  std::int64_t batch = 0;
  int epochs = 0;
  Optimizer optimizer;
  double l2 = 0;
  std::uint64_t seed = 1;
  ShardMemory memory = ShardMemory::host;
  DType communication_dtype = DType::float32;
  TablePrecision tables;  // lr and fm only
  bool int8_lookups = false;
  std::string checkpoint_dir;
  int checkpoint_every = 5;
  int max_to_keep = 3;
  bool resume = false;
  int eval_every = 1;  // epochs; 0: only after the last
  StopOptions stop;
  std::string settings_json = "{}";  // with the program's defaults, for checkpoints and summaries

  /// Fills unset settings with the program's defaults. Throws Error(invalid_argument) for missing, malformed
  /// or incompatible settings.
  static ModelOptions from(Program program, const Settings& settings);
};

}  // namespace capstan::train
