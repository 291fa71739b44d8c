// sidecar_evaluator.hpp -- evaluates each new checkpoint of a directory, beside the training; a checkpoint
// read from its files, without a cluster and without a ps.
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

/// Values of variables as they were saved, whatever the number of ps. Movable; one thread at a time.
class CAPSTAN_API SavedCheckpoint {
 public:
  /// Opens one checkpoint, <directory>/checkpoint-00000012, and compares every byte with its checksums.
  /// Throws Error: not_found, data_loss naming file and fault.
  explicit SavedCheckpoint(const std::filesystem::path& folder);
  SavedCheckpoint(SavedCheckpoint&&) noexcept;
  SavedCheckpoint& operator=(SavedCheckpoint&&) noexcept;
  ~SavedCheckpoint();

  const std::filesystem::path& folder() const noexcept;
  std::int64_t step() const noexcept;
  /// JSON, as given to CheckpointManager::save.
  const std::string& user_state() const noexcept;
  /// Of a SplitDataset, by its name: which splits were done. Throws Error(not_found).
  const std::string& position(const std::string& name) const;
  /// Names, in alphabetical order.
  std::vector<std::string> variables() const;
  /// Of a scalar variable (1).
  Shape shape(const std::string& variable) const;

  /// The whole variable, or rows [first, first + rows) of it. Throws Error: not_found listing the variables
  /// that there are, invalid_argument when T is not its dtype, out_of_range, data_loss when a file was
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
  /// What CheckpointOptions::directory is on the coordinator, on a file system that this host sees.
  std::filesystem::path checkpoint_dir;
  /// Ends after so many; 0: as many as there are.
  std::int64_t max_evaluations = 0;
  /// Ends when one of this step or a later one has been evaluated.
  std::optional<std::int64_t> last_step = {};
  /// Only later ones are evaluated: the step that the job resumed from, say.
  std::int64_t after_step = -1;
  /// What is behind the newest one is passed over, when there are several to evaluate.
  bool newest_only = false;
  /// Between two looks into the folder.
  std::chrono::milliseconds poll_interval = std::chrono::milliseconds(500);
  /// The folder must be there after so long.
  std::chrono::milliseconds folder_timeout = std::chrono::minutes(1);
  /// Ends when there has been no new one for so long; 0: never for that reason.
  std::chrono::milliseconds timeout = std::chrono::milliseconds(0);
};

/// What the rank with the role of evaluator runs; or a program of its own, beside a job or after it. It needs
/// no ps: the function reads variables from the checkpoint. One thread.
///
/// Checkpoints are evaluated in the order of their steps, each once. One that is damaged is named in the log
/// and passed over, and so is one that is deleted before its turn, or while it is read
/// (CheckpointOptions::max_to_keep).
class CAPSTAN_API SidecarEvaluator {
 public:
  using Evaluate = std::function<void(const SavedCheckpoint&)>;

  /// Throws Error(invalid_argument) for options that make no sense.
  explicit SidecarEvaluator(SidecarEvaluatorOptions options);
  /// Of a running job: ends after the last checkpoint when the job does. Throws Error(failed_precondition) on
  /// a rank of another role.
  SidecarEvaluator(const Cluster& cluster, SidecarEvaluatorOptions options);
  ~SidecarEvaluator();
  SidecarEvaluator(const SidecarEvaluator&) = delete;
  SidecarEvaluator& operator=(const SidecarEvaluator&) = delete;

  /// Returns the exit code for main: 0 when all is evaluated, by any of the reasons to end; 4 when the
  /// coordinator has died. Throws Error(not_found) when the folder is not there in time, and what `evaluate`
  /// throws. The job goes on without its evaluator then.
  int start(const Evaluate& evaluate);
  /// So far.
  std::int64_t evaluations() const noexcept { return evaluations_; }

 private:
  struct Job;

  bool look(const Evaluate& evaluate);
  bool evaluated_last() const;
  void pause();

  SidecarEvaluatorOptions options_;
  std::unique_ptr<Job> job_;  // none: stands alone
  std::int64_t evaluations_ = 0;
  std::int64_t step_ = -1;  // of the last one
};

}  // namespace capstan
