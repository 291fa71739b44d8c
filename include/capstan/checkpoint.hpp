// checkpoint.hpp -- saves all variables to HDF5, restores them with any number of ps, and schedules saves.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/detail/user_state.hpp"
#include "capstan/strategy.hpp"

namespace capstan {

/// A checkpoint is due as soon as one of these criteria is met. 0 disables a criterion.
struct SaveInterval {
  /// Steps since the last checkpoint.
  std::int64_t steps = 0;
  std::chrono::milliseconds time{0};
  /// Maximum share of the program's time spent in saves, such as 0.02: the longer the last save took, the
  /// later the next one is due (like SCR_CHECKPOINT_OVERHEAD of SCR). The first save is due immediately,
  /// since its cost is unknown.
  double overhead = 0;
};

/// Decides when a checkpoint is due. Used by one thread, except for request().
class CAPSTAN_API SaveSchedule {
 public:
  using Clock = std::chrono::steady_clock;

  /// `step` is the program's first step. Throws Error(invalid_argument) if a number is negative, or overhead
  /// is 1 or more.
  SaveSchedule(SaveInterval interval, std::int64_t step, Clock::time_point now);

  /// Returns true if a checkpoint was requested since the last one, or the interval has elapsed.
  bool due(std::int64_t step, Clock::time_point now) const;
  /// Records a save at `step` that blocked the program from `begin` to `end`.
  void saved(std::int64_t step, Clock::time_point begin, Clock::time_point end);

  /// Makes a checkpoint due, whatever the interval, for every schedule of this process. Any thread;
  /// async-signal-safe.
  static void request() noexcept;
  /// Installs a handler that calls request() when this process receives `signal`. mpirun forwards SIGUSR1 and
  /// SIGUSR2 to every rank; all ranks except the coordinator ignore them. Throws Error(invalid_argument) for
  /// a signal that cannot be handled.
  static void request_on(int signal);

 private:
  SaveInterval interval_;
  std::int64_t step_;
  Clock::time_point saved_at_;
  Clock::duration took_{0};
  bool has_saved_ = false;  // whether there was a save
  unsigned requests_seen_;
};

namespace checkpoint {
class CheckpointWriter;
}

struct CheckpointOptions {
  std::filesystem::path directory;
  /// Number of checkpoints to keep; 0: all. Older ones are deleted once a newer one is on disk. A checkpoint
  /// on which a kept increment is based is kept in addition.
  int max_to_keep = 5;
  /// Written into every checkpoint: a JSON object with the settings of the run. Empty: Capstan's settings.
  std::string settings = {};
  /// A checkpoint that would be deleted is kept permanently if it was saved at least this number of hours
  /// after the last permanently kept one (kept.json in the directory lists their names). 0: none.
  double keep_every_n_hours = 0;
  /// Criteria of due().
  SaveInterval interval = {};
};

/// Consistency of a checkpoint with pushes in flight.
enum class SaveConsistency : std::uint8_t {
  /// Each shard is saved at its own time, between two pushes to it. A function's pushes to several shards may
  /// be saved for only some of these shards.
  shard,
  /// All shards are saved at one time, at which no function runs: save() waits for running functions, and no
  /// other function starts until every ps has a snapshot of its shards.
  global,
};

struct SaveOptions {
  SaveConsistency consistency = SaveConsistency::shard;
  /// Saves only rows that were pushed to since this manager's last full save. That save is kept as long as an
  /// increment is based on it, and is restored together with the increment. A ps saves all rows if it does
  /// not know which rows changed: in this manager's first incremental save, and after a restart, a failover
  /// or a restore.
  bool incremental = false;
  /// Returns as soon as every ps has a snapshot of its shards; their files are written meanwhile. Without a
  /// ClusterCoordinator, save() waits for the files nevertheless.
  bool background = false;
};

/// How a checkpoint's variables are matched to the program's.
struct RestoreOptions {
  /// Called with a checkpoint's user state and directory name before anything is changed; may throw. Called
  /// again with the previous checkpoint if this one turns out to be damaged.
  using Check = std::function<void(const std::string& user_state, const std::string& directory)>;

  /// Maps names of the program's variables to their names in the checkpoint, where these differ.
  std::map<std::string, std::string> names = {};
  /// True: variables that are missing in the checkpoint keep their values, and are logged. False: a missing
  /// variable is an error.
  bool allow_missing = false;
  /// True: a variable of the checkpoint that the program does not have is restored if the program creates it
  /// later. False: such a variable is an error.
  bool allow_extra = true;
  Check check = {};
};

/// The last restored checkpoint.
class CAPSTAN_API LastRestored {
 public:
  /// The user state given to `save`, as JSON.
  const std::string& user_state() const noexcept { return user_state_; }
  /// The value given to `save`. Throws Error(failed_precondition) if that was JSON or a value of another
  /// type.
  template <detail::UserValue T>
  T user_state() const {
    return from_bytes<T>(detail::from_user_state(user_state_, detail::StateType<T>::name()));
  }
  const std::filesystem::path& restored_from() const noexcept { return restored_from_; }

  /// Returns the contents of the checkpoint that the program has not created so far, such as `variable "w"`.
  std::vector<std::string> unmatched() const;
  /// Throws Error(failed_precondition) unless the checkpoint and the program have the same contents; the
  /// message lists what each of them lacks.
  void assert_consumed() const;

 protected:
  explicit LastRestored(ParameterServerStrategy& strategy) : strategy_(strategy) {}
  /// Records the checkpoint just restored.
  void note(std::string user_state, std::filesystem::path path);

  ParameterServerStrategy& strategy_;

 private:
  std::string user_state_ = "null";
  std::filesystem::path restored_from_;
};

/// One checkpoint in a directory that the program names; never deleted automatically. Used on the
/// coordinator, by the thread that made the strategy.
class CAPSTAN_API Checkpoint : public LastRestored {
 public:
  /// `settings` as in CheckpointOptions.
  explicit Checkpoint(ParameterServerStrategy& strategy, std::string settings = {})
      : LastRestored(strategy), settings_(std::move(settings)) {}

  /// Saves everything into `directory`, as CheckpointManager::save does, replacing an existing checkpoint.
  /// Throws Error(already_exists) if the path exists and is not a checkpoint.
  void write(const std::filesystem::path& directory, const std::string& user_state = "null");
  template <detail::UserValue T>
  void write(const std::filesystem::path& directory, const T& user_state) {
    write(directory, detail::to_user_state(detail::StateType<T>::name(), to_bytes(user_state)));
  }

  /// Restores one checkpoint, which may be a CheckpointManager's; takes no lock. Returns its step, 0 if
  /// write() made it. Throws Error: not_found, data_loss, and the errors of
  /// CheckpointManager::restore_latest.
  std::int64_t read(const std::filesystem::path& directory, const RestoreOptions& options = {});

 private:
  std::string settings_;
};

/// Checkpoints of one strategy in one directory (docs/checkpoint_format.md). Used on the coordinator, by the
/// thread that made the strategy.
///
/// Functions may run while a checkpoint is saved and written: a ps copies its rows in pieces, and preserves
/// the saved values of rows that change before they are copied. With a SplitDataset every save is `global`: a
/// checkpoint holds the pushes of completed splits, the list of these splits, and nothing of any other split.
class CAPSTAN_API CheckpointManager : public LastRestored {
 public:
  /// Throws Error: permission_denied if the directory is not writable, failed_precondition naming the job if
  /// another job uses it. The directory is locked for this process until the manager is destroyed.
  CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options);

  /// Waits for a save in the background; logs its error.
  ~CheckpointManager();
  CheckpointManager(const CheckpointManager&) = delete;
  CheckpointManager& operator=(const CheckpointManager&) = delete;

  /// Saves a checkpoint; every ps writes its own file. Returns the checkpoint's directory once all files are
  /// on disk under their final names, or, in the background, the directory that will exist then. A crash at
  /// any point leaves earlier checkpoints intact. `user_state` is any JSON value. Throws the errors of join()
  /// if it waits for functions.
  ///
  /// First waits for an earlier save in the background, and throws its error. If a ps dies during the save
  /// and recovers, a blocking save writes the file of this ps again; a save in the background is abandoned
  /// with a warning.
  std::filesystem::path save(std::int64_t step, const std::string& user_state = "null",
                             const SaveOptions& options = {});
  /// As above; `user_state` is any value that capstan/serialize.hpp can serialize.
  template <detail::UserValue T>
  std::filesystem::path save(std::int64_t step, const T& user_state, const SaveOptions& options = {}) {
    return save(step, detail::to_user_state(detail::StateType<T>::name(), to_bytes(user_state)), options);
  }
  /// Returns whether the interval of the options has elapsed since the last save() or restore, or
  /// SaveSchedule::request() was called, perhaps by a signal:
  ///
  ///     if (checkpoints.due(step)) checkpoints.save(step, state, {.background = true});
  bool due(std::int64_t step) const;
  /// Blocks until a save in the background is on disk. Throws its error.
  void wait();

  /// Restores every variable of the strategy, including slots, from the newest complete and undamaged
  /// checkpoint, and returns its step; nullopt if the directory has none. Waits for a save in the background.
  /// First copies to the directory a checkpoint that a crashed job left only in --checkpoint-fast-dir. Logs
  /// newer, damaged checkpoints. Throws Error, before anything is changed: data_loss if all are damaged;
  /// failed_precondition listing every variable whose name, shape, dtype or optimizer differs from the
  /// checkpoint's, or naming a SplitDataset that was divided differently.
  ///
  /// Variables and SplitDatasets that the strategy creates later are restored from the checkpoint on
  /// creation, until another checkpoint is restored; creating one that does not match throws
  /// Error(failed_precondition). Parameters of an optimizer, such as the learning rate, keep the program's
  /// values; differences are logged.
  using Check = RestoreOptions::Check;
  std::optional<std::int64_t> restore_latest(const RestoreOptions& options = {});
  std::optional<std::int64_t> restore_latest(const Check& check) {
    return restore_latest(RestoreOptions{.check = check});
  }
  /// All checkpoints in the directory, oldest first.
  std::vector<std::filesystem::path> checkpoints() const;
  /// Step of the newest checkpoint in the directory, complete or damaged; nullopt if there is none.
  std::optional<std::int64_t> latest() const;

 private:
  std::filesystem::path save_now(std::int64_t step, const std::string& user_state,
                                 const SaveOptions& options);
  std::filesystem::path save_in_background(std::int64_t step, const std::string& user_state,
                                           const SaveOptions& options);

  SaveSchedule schedule_;
  std::unique_ptr<checkpoint::CheckpointWriter> writer_;
  struct Background;
  std::unique_ptr<Background> background_;  // null unless a save is in progress
};

}  // namespace capstan
