// sidecar_evaluator.hpp -- SidecarEvaluator: evaluates each new checkpoint during training; SavedCheckpoint:
// reads a checkpoint from its files, without a cluster or a ps.
//
//   cs::Cluster cluster = cs::Cluster::join(argc, argv);  // mpirun ... --capstan-evaluator
//   if (cluster.role() == cs::Role::evaluator) {
//     return cs::SidecarEvaluator(cluster, {.checkpoint_dir = "checkpoints"}).start(&evaluate);
//   }
//   if (cluster.role() != cs::Role::coordinator) return cs::Server(cluster).join();
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

namespace io {
class CheckpointReader;
}

/// Values of variables in a checkpoint, saved with any number of ps. Movable; one thread at a time.
class CAPSTAN_API SavedCheckpoint {
 public:
  /// Opens one checkpoint, such as <directory>/checkpoint-00000012, and verifies all checksums. Throws Error:
  /// not_found, data_loss naming the file and the fault.
  explicit SavedCheckpoint(const std::filesystem::path& directory);
  SavedCheckpoint(SavedCheckpoint&&) noexcept;
  SavedCheckpoint& operator=(SavedCheckpoint&&) noexcept;
  ~SavedCheckpoint();

  const std::filesystem::path& directory() const noexcept;
  std::int64_t step() const noexcept;
  /// JSON, as given to CheckpointManager::save.
  const std::string& user_state() const noexcept;
  /// Position of a SplitDataset, by its name: the splits that were done. Throws Error(not_found).
  const std::string& position(const std::string& name) const;
  /// Names, in alphabetical order.
  std::vector<std::string> variables() const;
  /// (1) for a scalar variable.
  Shape shape(const std::string& variable) const;

  /// Returns the complete variable, or rows [first, first + rows) of it. Throws Error: not_found listing the
  /// existing variables, invalid_argument if T is not its dtype, out_of_range, data_loss if a file was
  /// deleted meanwhile.
  template <class T>
  Array<T> read(const std::string& variable) const {
    return read_rows<T>(variable, 0, shape(variable).at(0));
  }
  template <class T>
  Array<T> read_rows(const std::string& variable, std::int64_t first, std::int64_t rows) const {
    Array<T> out(shape_of_rows(variable, dtype_of<T>, first, rows));
    read_bytes(variable, first, rows, out.values.data());
    return out;
  }

 private:
  Shape shape_of_rows(const std::string& variable, DType dtype, std::int64_t first, std::int64_t rows) const;
  void read_bytes(const std::string& variable, std::int64_t first, std::int64_t rows, void* out) const;

  std::unique_ptr<io::CheckpointReader> reader_;
};

struct SidecarEvaluatorOptions {
  /// CheckpointOptions::directory of the coordinator, on a file system that this host can access.
  std::filesystem::path checkpoint_dir;
  /// Ends after this number of evaluations; 0: no limit.
  std::int64_t max_evaluations = 0;
  /// Ends once a checkpoint of this step or a later one has been evaluated.
  std::optional<std::int64_t> last_step = {};
  /// Evaluates only checkpoints of later steps than this one, such as the step that the job resumed from.
  std::int64_t after_step = -1;
  /// If several new checkpoints are found, evaluates only the newest.
  bool newest_only = false;
  /// Interval between scans of the directory.
  std::chrono::milliseconds poll_interval = std::chrono::milliseconds(500);
  /// Time within which the directory must exist.
  std::chrono::milliseconds directory_timeout = std::chrono::minutes(1);
  /// Ends if there is no new checkpoint for this time; 0: no limit.
  std::chrono::milliseconds timeout = std::chrono::milliseconds(0);
};

/// Evaluates checkpoints on the rank with the role evaluator, or in a separate program, during a job or after
/// it. It needs no ps: the function reads variables from the checkpoint. One thread.
///
/// Checkpoints are evaluated in the order of their steps, each once. A checkpoint is logged and skipped if it
/// is damaged, or deleted before or during its evaluation (CheckpointOptions::max_to_keep).
class CAPSTAN_API SidecarEvaluator {
 public:
  using Evaluate = std::function<void(const SavedCheckpoint&)>;

  /// Throws Error(invalid_argument) for invalid options.
  explicit SidecarEvaluator(SidecarEvaluatorOptions options);
  /// For a running job: ends after the last checkpoint once the job ends. Throws Error(failed_precondition)
  /// on a rank of another role.
  SidecarEvaluator(const Cluster& cluster, SidecarEvaluatorOptions options);
  ~SidecarEvaluator();
  SidecarEvaluator(const SidecarEvaluator&) = delete;
  SidecarEvaluator& operator=(const SidecarEvaluator&) = delete;

  /// Returns the exit code for main: 0 once a limit of the options is reached or the job has ended; 4 if the
  /// coordinator died. Throws Error(not_found) if the directory does not exist in time, and the errors of
  /// `evaluate`; the job then continues without its evaluator.
  int start(const Evaluate& evaluate);
  /// Number of evaluations so far.
  std::int64_t evaluations() const noexcept { return evaluations_; }

 private:
  struct Job;

  bool evaluate_new(const Evaluate& evaluate);
  bool evaluated_last() const;
  void pause();

  SidecarEvaluatorOptions options_;
  std::unique_ptr<Job> job_;  // null outside of a job
  std::int64_t evaluations_ = 0;
  std::int64_t step_ = -1;  // step of the newest checkpoint that was evaluated or skipped
};

}  // namespace capstan
