// run_options.hpp -- the options that all programs of `capstan train` have.
#pragma once

#include <cstdint>
#include <string>

#include "capstan/dtype.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/strategy.hpp"
#include "capstan/variable_options.hpp"
#include "train/stop_request.hpp"
#include "train/table_precision.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

struct RunOptions {
  int epochs = 0;      // the maximum, if patience is above 0
  int patience = 0;    // evaluations without an improvement after which training stops; 0: never
  int eval_every = 1;  // epochs; 0: only after the last
  Optimizer optimizer;
  std::uint64_t seed = 1;
  ShardMemory memory = ShardMemory::host;
  DType communication_dtype = DType::float32;
  TablePrecision tables;      // see read_table_options()
  bool int8_lookups = false;  // see read_table_options()
  std::string checkpoint_dir;
  int checkpoint_every = 5;
  int max_to_keep = 3;
  bool resume = false;
  StopOptions stop;
  std::string settings_json = "{}";  // with the program's defaults, for checkpoints and summaries

  /// REQUIRES: `settings` have the program's defaults. Throws Error(invalid_argument) for --resume without
  /// --checkpoint-dir.
  static RunOptions from(const Settings& settings);
  /// Sets the options of programs with tables. Throws Error(invalid_argument) for values that TablePrecision
  /// rejects.
  void read_table_options(const Settings& settings);

  /// The options of the strategy of a job with `ps` ps: each variable has a shard on each ps.
  StrategyOptions strategy_options(int ps) const;
};

}  // namespace capstan::train
