// checkpoint_directory.hpp -- the directory of all checkpoints of a run, maintained by the coordinator.
//
//   directory.check_writable();                            before training starts
//   unfinished = directory.begin(step);                    -> <directory>/checkpoint-00000012.tmp
//   report = write_part(unfinished / part_file_name(ps, n), arrays);     on every ps
//   directory.publish(step, reports, {...});               -> <directory>/checkpoint-00000012
//
// docs/checkpoint_format.md describes the files. One thread at a time, and one job per directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/manifest.hpp"

namespace capstan::io {

/// State to store with the checkpoint, and the location of its base. `user_state`, `settings` and `positions`
/// hold JSON.
struct PublishOptions {
  std::string user_state = "null";                    // any value: epoch, random state, dataset positions
  std::string settings = "{}";                        // an object: the settings of the run
  std::map<std::string, std::string> positions = {};  // by name of the dataset or other checkpointable object
  std::map<std::string, std::int64_t> counters = {};  // values, by name
  std::optional<Base> base = {};                      // set for an increment
  std::filesystem::path base_directory = {};          // not stored; empty: the CheckpointDirectory's own path
};

struct CheckpointEntry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Returns all published checkpoints below `directory`, by step, without checking them for damage. Empty if
/// `directory` does not exist.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

class CheckpointDirectory {
 public:
  /// Keeps the newest `max_to_keep` checkpoints (0: all); of the older ones, retains one every
  /// `keep_every_n_hours` (RetainedCheckpoints; 0: none). Touches no file.
  explicit CheckpointDirectory(std::filesystem::path directory, int max_to_keep = 5,
                               double keep_every_n_hours = 0);

  /// Creates the directory if missing, then creates, fsyncs and removes a probe file. If `keep_every_n_hours`
  /// is above 0, also records the time from which hours are counted, unless an earlier run did. Throws Error:
  /// permission_denied, or resource_exhausted if the disk is full.
  void check_writable() const;

  /// Removes the remains of crashed saves and creates an empty directory for the parts of `step`.
  std::filesystem::path begin(std::int64_t step);

  /// Checks that the parts hold every row of every array exactly once, writes master and manifest, and makes
  /// all files durable. Then renames the directory, updates `latest` and only then deletes expired
  /// checkpoints, except bases of increments that remain. Replaces an existing checkpoint of the same step;
  /// the old one stays beside the new one while increments depend on it. Returns the final path. An Error or
  /// a crash at any instruction damages no earlier checkpoint: each remains complete unless it was replaced
  /// or has expired.
  std::filesystem::path publish(std::int64_t step, std::span<const PartReport> parts,
                                const PublishOptions& options = {});

  /// Second half of `publish`: turns the directory `complete` into the checkpoint of `step`. REQUIRES:
  /// `complete` is on the same file system and has all files of the checkpoint.
  std::filesystem::path install(std::int64_t step, const std::filesystem::path& complete);

  /// By step, in ascending order.
  std::vector<CheckpointEntry> list() const { return list_checkpoints(directory_); }
  /// Returns the last entry of `list`; does not read the file `latest`.
  std::optional<CheckpointEntry> latest() const;

  const std::filesystem::path& path() const noexcept { return directory_; }

  /// For tests: `publish` and `install` call the hook before each of their steps, with the name of that step,
  /// such as "rename". An exception from the hook ends the save there, as a crash would.
  void on_publish_step(std::function<void(std::string_view)> hook) { hook_ = std::move(hook); }

 private:
  void before_step(std::string_view name) const;
  void rename_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to) const;
  std::vector<CheckpointEntry> expired_checkpoints(std::int64_t newest) const;
  void delete_expired(std::int64_t newest) const;

  std::filesystem::path directory_;
  int max_to_keep_;
  double keep_every_n_hours_;
  std::function<void(std::string_view)> hook_;
};

}  // namespace capstan::io
