// fast_level.hpp -- the first of two checkpoint levels: node-local storage until a checkpoint is drained.
//
//   location = fast.begin(step);        -> <base>/checkpoints-<hash>/checkpoint-00000012.tmp
//   ... every ps writes its part there and copies it to the checkpoint directory ...
//   fast.publish(step, parts, {...});   all parts are written: usable after a crash of the job
//   fast.clear();                       the checkpoint is in the checkpoint directory
//   fast.recover(directory);            in the next job
//
// Guarantees: docs/checkpointing.md#two-levels. Only `recover` throws: a failed fast level never fails a
// save.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/fast_directory.hpp"

namespace capstan::io {

/// Location to which a ps writes its part first.
struct FastLocation {
  std::filesystem::path directory = {};  // empty: no fast level
  /// Text of the coordinator's kOwnerFile. A ps that reads the same text beside `directory` shares the
  /// coordinator's directory. Empty if the fast level does not work on the coordinator's host.
  std::string owner = {};
};

/// File beside the fast checkpoints: the number in kFastLevelFile, a random number of the saving process, and
/// the path of the checkpoint directory.
inline constexpr const char* kOwnerFile = "owner";
/// File in a checkpoint directory: a random number that identifies its fast checkpoints.
inline constexpr const char* kFastLevelFile = "fast-level";

/// The fast level of one checkpoint directory, as seen by the coordinator. One thread at a time.
class FastLevel {
 public:
  /// `base` is --checkpoint-fast-dir; empty disables the level, and the first checkpoint saved without it
  /// invalidates fast checkpoints of earlier jobs. Touches no file. Throws Error(invalid_argument) if `base`
  /// is not absolute.
  FastLevel(std::filesystem::path base, std::filesystem::path directory);

  explicit operator bool() const noexcept { return !base_.empty(); }

  /// Removes the remains of a crashed save and creates a directory for the parts of `step`. If that fails on
  /// this host, logs one warning and returns a location without `owner`, since other hosts may still use it.
  FastLocation begin(std::int64_t step);
  /// Turns the directory of `begin` into the only checkpoint of this level. REQUIRES: this host sees all
  /// parts. Returns false, and logs the reason, on failure.
  bool publish(std::int64_t step, std::span<const PartReport> parts, const PublishOptions& options);
  /// Removes all fast checkpoints; call when the newest one is in the checkpoint directory.
  void clear() noexcept;
  /// Cleans up at the end of a job; keeps a checkpoint that did not reach the checkpoint directory.
  void close() noexcept;

  /// Copies the newest undamaged fast checkpoint to `directory` if it is newer than all checkpoints there,
  /// and clears this level. Returns its step. Logs and skips damaged ones. Throws Error, such as
  /// resource_exhausted, if the copy cannot be written.
  std::optional<std::int64_t> recover(CheckpointDirectory& directory);

  /// Directory of these fast checkpoints, below `base`.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::string owner_text() const;
  bool owner_is_ours() const;
  /// Returns nothing if the directory is missing, belongs to another checkpoint directory, or could have been
  /// planted by another user; logs the last case once.
  std::optional<FastDirectory> open_owned() noexcept;
  void warn_once(const std::exception& error) noexcept;

  std::filesystem::path base_;
  std::filesystem::path directory_;
  std::filesystem::path path_;
  std::string process_;  // random number of this process
  bool warned_ = false;
};

}  // namespace capstan::io
