// checkpoint.hpp -- saving all variables to HDF5 and restoring them, whatever the number of ps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/strategy.hpp"

namespace capstan {

struct CheckpointOptions {
  std::filesystem::path directory;
  /// Older ones are deleted, but never before a newer one is on disk. 0 keeps all.
  int max_to_keep = 5;
  /// Written into every checkpoint: a JSON object, the settings of the run.
  std::string settings = "{}";
};

/// Checkpoints of one strategy in one directory (docs/checkpoint_format.md). On the coordinator, by the
/// thread that made the strategy; nothing may be pushing meanwhile: join() first. Splits of a SplitDataset
/// need no join: save() awaits those that run and holds back the others until it is done, so that a
/// checkpoint has what the splits that are done pushed, which ones these are, and nothing of any other.
class CheckpointManager {
 public:
  /// Throws Error(permission_denied) at once when the directory cannot be written.
  CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options);

  /// Every ps writes its own file; returns the folder once all of it is on disk under its final name. A crash
  /// at any point leaves earlier checkpoints as they were. `user_state` is any JSON value. With splits under
  /// way it throws what join() would.
  std::filesystem::path save(std::int64_t step, const std::string& user_state = "null");

  /// Fills every variable of the strategy, slots included, from the newest checkpoint that is complete and
  /// undamaged, and returns its step; nothing when the directory has none. Damaged newer ones are named in
  /// the log. Throws Error: data_loss when all are damaged, failed_precondition listing every variable whose
  /// name, shape, dtype or optimizer is not the checkpoint's, or naming a SplitDataset that was cut in
  /// another way (nothing is changed then).
  ///
  /// `check` sees the user state and the folder's name before anything is changed, and may throw.
  using Check = std::function<void(const std::string& user_state, const std::string& folder)>;
  std::optional<std::int64_t> restore_latest(const Check& check = {});

  /// Step of the newest one in the directory, whether whole or damaged; nothing when there is none.
  std::optional<std::int64_t> latest() const;

  /// Of the checkpoint that was restored last: what was given to `save`.
  const std::string& user_state() const noexcept { return user_state_; }
  const std::filesystem::path& restored_from() const noexcept { return restored_from_; }

 private:
  ParameterServerStrategy& strategy_;
  CheckpointOptions options_;
  std::string user_state_ = "null";
  std::filesystem::path restored_from_;
};

}  // namespace capstan
