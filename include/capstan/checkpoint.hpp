// checkpoint.hpp -- saving all variables to HDF5 and restoring them, whatever the number of ps; when to save.
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

/// What makes a checkpoint due, whichever comes first. 0: not for this reason.
struct SaveInterval {
  /// Since the last one.
  std::int64_t steps = 0;
  std::chrono::milliseconds time{0};
  /// The share of its time that the program may spend in saves, such as 0.02: the longer the last one took,
  /// the later the next one is due (as SCR's SCR_CHECKPOINT_OVERHEAD). The first one is due at once, since
  /// nobody knows what it takes.
  double overhead = 0;
};

/// One thread, but for the requests.
class CAPSTAN_API SaveSchedule {
 public:
  using Clock = std::chrono::steady_clock;

  /// `step`: the program's first. Throws Error(invalid_argument) when a number is negative, or overhead is 1
  /// or more.
  SaveSchedule(SaveInterval interval, std::int64_t step, Clock::time_point now);

  /// A request has come since the last one, or the interval is over.
  bool due(std::int64_t step, Clock::time_point now) const;
  /// A save at that step kept the program from its work from `begin` to `end`.
  void saved(std::int64_t step, Clock::time_point begin, Clock::time_point end);

  /// A checkpoint is due, whatever the interval, for every schedule of this process. Any thread; a signal
  /// handler, too.
  static void request() noexcept;
  /// From now on this signal is a request, and does nothing else. mpirun hands SIGUSR1 and SIGUSR2 on to
  /// every rank; all but the coordinator ignore them. Throws Error(invalid_argument).
  static void request_on(int signal);

 private:
  SaveInterval interval_;
  std::int64_t step_;
  Clock::time_point saved_at_;
  Clock::duration took_{0};
  bool any_ = false;  // saved
  unsigned requests_seen_;
};

namespace checkpoint {
class CheckpointWriter;
}

struct CheckpointOptions {
  std::filesystem::path directory;
  /// Older ones are deleted, but never before a newer one is on disk; nor one that increments need which
  /// stay, beyond this number. 0 keeps all.
  int max_to_keep = 5;
  /// Written into every checkpoint: a JSON object, the settings of the run. Empty: those of Capstan.
  std::string settings = {};
  /// Of those that would be deleted, one that was saved so many hours or more after the one that was kept
  /// last stays for good (kept.json in the directory has their names). 0: none.
  double keep_every_n_hours = 0;
  /// For due().
  SaveInterval interval = {};
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
  /// Write only rows that were pushed to since the last save by this manager that was not incremental; they
  /// are restored together with that one, which stays as long as they do. The first such save, and one after
  /// which nothing is known of an earlier one, is a whole one. So is what a ps writes that was started anew.
  bool incremental = false;
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

/// The checkpoint that was restored last.
class CAPSTAN_API LastRestored {
 public:
  /// What was given to `save`: JSON.
  const std::string& user_state() const noexcept { return user_state_; }
  /// The value that was given to `save`. Throws Error(failed_precondition) when that was JSON, or a value of
  /// another type.
  template <detail::UserValue T>
  T user_state() const {
    return from_bytes<T>(detail::from_user_state(user_state_, detail::StateType<T>::name()));
  }
  const std::filesystem::path& restored_from() const noexcept { return restored_from_; }

  /// What of it the program does not have, so far: variable "w".
  std::vector<std::string> unmatched() const;
  /// Throws Error(failed_precondition) that lists what is in it and not in the program, and what of the
  /// program is not in it.
  void assert_consumed() const;

 protected:
  explicit LastRestored(ParameterServerStrategy& strategy) : strategy_(strategy) {}
  /// Notes the checkpoint that was just restored.
  void note(std::string user_state, std::filesystem::path path);

  ParameterServerStrategy& strategy_;

 private:
  std::string user_state_ = "null";
  std::filesystem::path restored_from_;
};

/// One checkpoint in a folder of its own, which the program names; none is ever deleted. On the coordinator,
/// by the thread that made the strategy.
class CAPSTAN_API Checkpoint : public LastRestored {
 public:
  /// `settings` as in CheckpointOptions.
  explicit Checkpoint(ParameterServerStrategy& strategy, std::string settings = {})
      : LastRestored(strategy), settings_(std::move(settings)) {}

  /// Saves everything into `folder`, as CheckpointManager::save does, in place of a checkpoint that is there.
  /// Throws Error(already_exists) when something else is.
  void write(const std::filesystem::path& folder, const std::string& user_state = "null");
  template <detail::UserValue T>
  void write(const std::filesystem::path& folder, const T& user_state) {
    write(folder, detail::to_user_state(detail::StateType<T>::name(), to_bytes(user_state)));
  }

  /// Restores one checkpoint, also one of a CheckpointManager; takes no lock. Returns its step, 0 where
  /// write() made it. Throws Error: not_found, data_loss, and what CheckpointManager::restore_latest throws.
  std::int64_t read(const std::filesystem::path& folder, const RestoreOptions& options = {});

 private:
  std::string settings_;
};

/// Checkpoints of one strategy in one directory (docs/checkpoint_format.md). On the coordinator, by the
/// thread that made the strategy.
///
/// Functions may run while a checkpoint is saved, and go on while it is written: a ps copies its rows in
/// pieces, and keeps for the checkpoint those that change before their turn. With a SplitDataset every save
/// is `global`: a checkpoint has what the splits that are done pushed, which ones these are, and nothing of
/// any other.
class CAPSTAN_API CheckpointManager : public LastRestored {
 public:
  /// Throws Error at once: permission_denied when the directory cannot be written, failed_precondition when
  /// another job has it, saying which. It is this process's as long as the manager lives.
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
  /// `user_state` is any value that capstan/serialize.hpp can pack.
  template <detail::UserValue T>
  std::filesystem::path save(std::int64_t step, const T& user_state, const SaveOptions& options = {}) {
    return save(step, detail::to_user_state(detail::StateType<T>::name(), to_bytes(user_state)), options);
  }
  /// The interval of the options is over since the last save() or restore, or SaveSchedule::request() asks
  /// for one, perhaps by a signal:
  ///
  ///     if (checkpoints.due(step)) checkpoints.save(step, state, {.background = true});
  bool due(std::int64_t step) const;
  /// Returns when what save() writes in the background is on disk. Throws what was wrong with it.
  void wait();

  /// Fills every variable of the strategy, slots included, from the newest checkpoint that is complete and
  /// undamaged, and returns its step; nothing when the directory has none. One that is saved in the
  /// background is awaited; one that a crashed job left in --checkpoint-fast-dir alone is brought to the
  /// directory first. Damaged newer ones are named in the log. Throws Error: data_loss when all are
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
  /// All in the directory, oldest first.
  std::vector<std::filesystem::path> checkpoints() const;
  /// Step of the newest one in the directory, whether whole or damaged; nothing when there is none.
  std::optional<std::int64_t> latest() const;

 private:
  std::filesystem::path save_now(std::int64_t step, const std::string& user_state,
                                 const SaveOptions& options);
  std::filesystem::path save_in_background(std::int64_t step, const std::string& user_state,
                                           const SaveOptions& options);

  SaveSchedule schedule_;
  std::unique_ptr<checkpoint::CheckpointWriter> writer_;
  struct Background;
  std::unique_ptr<Background> background_;  // null: no save is in progress
};

}  // namespace capstan
