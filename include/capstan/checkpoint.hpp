// checkpoint.hpp -- saving all variables to HDF5 and restoring them, whatever the number of ps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
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

/// What of the pushes that are under way while a checkpoint is saved is in it.
enum class SaveConsistency : std::uint8_t {
  /// Each shard is as it was between two pushes, and they are taken one after another: what a function pushed
  /// to several shards may be in some of them.
  shard,
  /// All shards are as they were between functions: those that run end first, and no other begins until every
  /// ps has its shards.
  global,
};

struct SaveOptions {
  SaveConsistency consistency = SaveConsistency::shard;
  /// Return as soon as every ps has its shards as they are saved; their files are written meanwhile. Without
  /// a ClusterCoordinator save() waits for the files all the same.
  bool background = false;
};

/// How a checkpoint's variables become the program's.
struct RestoreOptions {
  /// Sees the user state and the folder's name of a checkpoint before anything is changed, and may throw. It
  /// is called again with the one before when that one turns out to be damaged.
  using Check = std::function<void(const std::string& user_state, const std::string& folder)>;

  /// Variables that have another name in the checkpoint: by the name here, the name there.
  std::map<std::string, std::string> names = {};
  /// Variables that it does not have keep the values that they have; the log names them.
  bool allow_missing = false;
  /// Variables of it that the program does not have may wait until the program makes them. Without this they
  /// are an error.
  bool allow_extra = true;
  Check check = {};
};

/// Checkpoints of one strategy in one directory (docs/checkpoint_format.md). On the coordinator, by the
/// thread that made the strategy.
///
/// Functions may run while a checkpoint is saved, and go on while it is written: a ps copies its rows in
/// pieces, and keeps for the checkpoint those that change before their turn. With a SplitDataset every save
/// is `global`: a checkpoint has what the splits that are done pushed, which ones these are, and nothing of
/// any other.
class CheckpointManager {
 public:
  /// Throws Error(permission_denied) at once when the directory cannot be written.
  CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options);

  /// Waits for what save() writes in the background; what goes wrong then is in the log.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  /// Every ps writes its own file; returns the folder once all of it is on disk under its final name, or, in
  /// the background, where it will be. A crash at any point leaves earlier checkpoints as they were.
  /// `user_state` is any JSON value. Where functions are awaited it throws what join() would.
  ///
  /// Parts are written anew when a ps dies meanwhile and comes back; in the background the save then ends
  /// with a warning. Waits for an earlier save in the background first, and throws what was wrong with it.
  std::filesystem::path save(std::int64_t step, const std::string& user_state = "null",
                             const SaveOptions& options = {});
  /// Returns when what save() writes in the background is on disk. Throws what was wrong with it.
  void wait();

  /// Fills every variable of the strategy, slots included, from the newest checkpoint that is complete and
  /// undamaged, and returns its step; nothing when the directory has none. One that is saved in the
  /// background is awaited. Damaged newer ones are named in the log. Throws Error: data_loss when all are
  /// damaged, failed_precondition listing every variable whose name, shape, dtype or optimizer is not the
  /// checkpoint's, or naming a SplitDataset that was cut in another way. Nothing is changed then.
  ///
  /// Variables and datasets of splits that the strategy makes later take what the checkpoint has of them as
  /// they are made, until another one is restored; making one that does not fit throws
  /// Error(failed_precondition). An optimizer's learning rate and the like are the program's, not the
  /// checkpoint's; the log says where they differ.
  using Check = RestoreOptions::Check;
  std::optional<std::int64_t> restore_latest(const RestoreOptions& options = {});
  std::optional<std::int64_t> restore_latest(const Check& check) {
    return restore_latest(RestoreOptions{.check = check});
  }
  /// What of the checkpoint that was restored last the program does not have, so far: variable "w".
  std::vector<std::string> unmatched() const;
  /// Throws Error(failed_precondition) that lists what is in the checkpoint that was restored last and not in
  /// the program, and variables of the program that are not in it.
  void assert_consumed() const;

  /// Step of the newest one in the directory, whether whole or damaged; nothing when there is none.
  std::optional<std::int64_t> latest() const;

  /// Of the checkpoint that was restored last: what was given to `save`.
  const std::string& user_state() const noexcept { return user_state_; }
  const std::filesystem::path& restored_from() const noexcept { return restored_from_; }

 private:
  struct Saving;
  Saving begin(std::int64_t step, const std::string& user_state, const SaveOptions& options);
  std::filesystem::path finish(Saving& saving);

  ParameterServerStrategy& strategy_;
  CheckpointOptions options_;
  std::string user_state_ = "null";
  std::filesystem::path restored_from_;
  struct Background;
  std::unique_ptr<Background> background_;  // null: nothing is written
};

}  // namespace capstan
