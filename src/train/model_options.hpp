// model_options.hpp -- what `capstan train lr|fm|mlp` is to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/optimizers.hpp"
#include "train/orders.hpp"
#include "train/sparse/examples.hpp"
#include "train/stop_request.hpp"

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
  std::vector<std::string> labels, test_labels;  // of mlp
  SparseFormat format;                           // of lr and fm
  bool bias = true;
  std::int64_t factors = 0;          // of fm
  std::vector<std::int64_t> hidden;  // of mlp
  bool on_gpu = false;               // of mlp
  Mode mode = Mode::asynchronous;
  std::int64_t staleness = 0;
  std::int64_t batch = 0;
  int epochs = 0;
  Optimizer optimizer;
  double l2 = 0;
  std::uint64_t seed = 1;
  std::string checkpoint_dir;
  int checkpoint_every = 5;
  int max_to_keep = 3;
  bool resume = false;
  int eval_every = 1;  // 0: only at the end
  StopOptions stop;
  std::string settings_json = "{}";

  /// Fills what was left to the program. Throws Error(invalid_argument) for what is missing, malformed or
  /// does not go together.
  static ModelOptions from(Program program, const Settings& settings);
};

}  // namespace capstan::train
