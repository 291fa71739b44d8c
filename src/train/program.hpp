// program.hpp -- the interface of the programs of `capstan train`, as the `capstan` program sees them.
#pragma once

#include <memory>
#include <string_view>

#include "capstan/cluster.hpp"
#include "train/run_options.hpp"
#include "train/run_report.hpp"

namespace capstan::train {

/// A program with its options. Made on every rank before the job starts, so that all ranks find the same
/// mistakes.
class TrainingProgram {
 public:
  virtual ~TrainingProgram() = default;
  virtual const RunOptions& options() const = 0;
  /// What the program counts: "examples".
  virtual std::string_view unit() const = 0;
  /// Reads the data, trains, evaluates and saves checkpoints. Runs on the coordinator. Throws Error.
  virtual Results run(const Cluster& cluster, const RunHooks& hooks) const = 0;
};

/// Makes the program of `capstan train NAME`. Fills unset settings with the program's defaults. Throws
/// Error(invalid_argument) for missing, malformed or incompatible settings, or an unknown name.
std::unique_ptr<TrainingProgram> make_program(std::string_view name, const Settings& settings);

}  // namespace capstan::train
